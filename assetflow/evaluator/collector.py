"""How a process of ours that stays sets Python's garbage collector."""

from __future__ import annotations

import gc

# Objects that are made and not freed between two looks of the collector: more than a batch of updates needs.
BETWEEN_LOOKS = 100_000


def spare_what_stays() -> None:
    """Let the collector leave alone what is there now: code, and the consumers, which an evaluator keeps.

    Otherwise it walks through all of it again and again: while updates are recorded that is a third of the whole work,
    and an answer of the server may wait 200 ms for it. Call it when the evaluator or the server is ready, in a process
    that goes on with it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(BETWEEN_LOOKS, 20, 50)
