"""The sign of a state: which small picture stands beside the word, so that nobody has to tell colours apart."""

from __future__ import annotations

from typing import Literal

Sign = Literal["good", "busy", "bad", "wait", "off", "pause", "stale", "outdated", "missing", ""]

_SIGNS: dict[Sign, tuple[str, ...]] = {
    "good": ("completed", "fresh"),
    "busy": ("running", "launched", "retrying"),
    "bad": ("failed", "crashed", "timedout", "undeliverable"),
    "wait": ("late", "waiting", "pending", "scheduled", "awaitingretry"),
    "pause": ("paused", "held", "stopped"),
    "off": ("cancelled", "cancelling", "never run", "never updated"),
    "stale": ("stale",),
    "outdated": ("outdated",),
    "missing": ("missing",),
}
_SIGN_OF: dict[str, Sign] = {state: sign for sign, states in _SIGNS.items() for state in states}


def sign_of(state: str, other: Sign = "") -> Sign:
    """Return the sign of a state of an asset, a flow, a run or a decision.

    Parameters:
        other: the sign of a word that is not such a state.
    """
    return _SIGN_OF.get(state.lower(), other)
