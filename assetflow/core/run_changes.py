"""How flow runs begin, go on and end, as Prefect tells."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from assetflow.core.freshness.records import RunState


class RunEnd(NamedTuple):
    """How a flow run ended.

    Attributes:
        state: the name of its last state, which a flow may choose: "Completed", "Skipped", "TimedOut".
        outcome: the type of its last state; a deleted run counts as cancelled (8.6).
        at: the time of its last state, UTC; `None` if Prefect does not tell.
        began: when it started, UTC; `None` if it never did, or Prefect does not tell.
    """

    state: str
    outcome: RunState
    at: datetime | None = None
    began: datetime | None = None


class RunChange(NamedTuple):
    """A change of the state of a flow run: it is taken by a worker, begins, ends, or goes on again after its end.

    Attributes:
        deployment: `None` for a run without one.
        end: how it ended; `None` if it goes on.
        began: when it started, UTC; `None` if it does not start, or starts again after it waited.
        retried: when it left its final state, UTC, because somebody retries it; `None` if it does not (4.7).
    """

    run: UUID
    deployment: UUID | None
    end: RunEnd | None = None
    began: datetime | None = None
    retried: datetime | None = None


class RunGoingOn(NamedTuple):
    """A flow run that goes on: from Pending to its end (8.6).

    Attributes:
        decision: the decision that it belongs to; `None` if it was started by hand, by time or by something else.
        asked: when it was created, or is due if a timetable made it, UTC.
        by_time: a timetable made it.
        began: when it started, UTC; `None` if it did not yet.
    """

    run: UUID
    deployment: UUID
    decision: UUID | None
    partition_key: str | None
    asked: datetime
    by_time: bool
    began: datetime | None = None


def is_news(state_at: datetime | None, heard: datetime | None, ended: datetime | None) -> bool:
    """Return True if a run has come into a newer state than the one that is known (4.7).

    Parameters:
        state_at: the time of the state, by Prefect's clock; `None` if Prefect does not tell: then the first end counts.
        heard: the time of the state that is known; `None` if none is.
        ended: when the run ended, as far as is known.
    """
    return ended is None if state_at is None or heard is None else heard < state_at


DELETED = RunEnd("Deleted", "cancelled")

# The names that Prefect gives to the states of runs that failed.
FAILED = ("Failed", "Crashed", "TimedOut")
