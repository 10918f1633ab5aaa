"""How flow runs end."""

from __future__ import annotations

from typing import NamedTuple

from assetflow.core.freshness.records import RunState


class RunEnd(NamedTuple):
    """How a flow run ended.

    Attributes:
        state: the name of its last state, which a flow may choose: "Completed", "Skipped", "TimedOut".
        outcome: the type of its last state; a deleted run counts as cancelled (8.6).
    """

    state: str
    outcome: RunState


DELETED = RunEnd("Deleted", "cancelled")

# The names that Prefect gives to the states of runs that failed.
FAILED = ("Failed", "Crashed", "TimedOut")
