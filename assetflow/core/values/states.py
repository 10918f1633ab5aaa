"""The states of assets, flows, runs and queues: one word for each, which has the same sign and colour everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Sign = Literal["good", "busy", "bad", "wait", "off", "pause", "stale", "outdated", "missing", ""]
Colour = Literal["good", "busy", "bad", "wait", "off"]

# docs/glossary.md shows it as a table.
STATES: Mapping[Sign, tuple[str, ...]] = {
    "good": (
        "completed",
        "fresh",
        "updated",
        "up to date",
        "pass",
        "ready",
        "satisfied",
        "consumed",
        "done",
        "watching",
        "starts",
    ),
    "busy": ("running", "launched", "retrying", "queued", "preparing"),
    "bad": ("failed", "crashed", "timedout", "undeliverable", "fail", "never", "not mapped", "failing", "refused"),
    "wait": ("late", "waiting", "pending", "scheduled", "awaitingretry", "warn", "dropped", "waits"),
    "pause": ("paused", "held", "stopped"),
    "off": ("cancelled", "cancelling", "removed", "taken off", "never run", "never updated"),
    "stale": ("stale",),
    "outdated": ("outdated",),
    "missing": ("missing",),
}
_COLOURS: Mapping[Sign, Colour] = {"pause": "wait", "stale": "wait", "outdated": "good", "missing": "bad", "": "off"}
_SIGN_OF: Mapping[str, Sign] = {state: sign for sign, states in STATES.items() for state in states}


def sign_of(state: str, other: Sign = "") -> Sign:
    """Return the sign of a state, in upper or lower case; words may follow it, as in `failed on this data`.

    Parameters:
        other: the sign of a word that is not a state.
    """
    words = state.lower()
    return _SIGN_OF.get(words) or _SIGN_OF.get(words.partition(" ")[0], other)


def colour_of(sign: Sign) -> Colour:
    """Return the colour in which a sign is drawn."""
    return _COLOURS.get(sign, sign)  # type: ignore[return-value]
