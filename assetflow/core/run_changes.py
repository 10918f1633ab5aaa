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
        at: when it ended, UTC; `None` if Prefect does not tell.
        began: when it started, UTC; `None` if it never did, or Prefect does not tell.
    """

    state: str
    outcome: RunState
    at: datetime | None = None
    began: datetime | None = None


class RunChange(NamedTuple):
    """A change of the state of a flow run: it is taken by a worker, begins, or ends.

    Attributes:
        deployment: `None` for a run without one.
        end: how it ended; `None` if it goes on.
        began: when it started, UTC; `None` if it does not start, or starts again after it waited.
    """

    run: UUID
    deployment: UUID | None
    end: RunEnd | None = None
    began: datetime | None = None


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


DELETED = RunEnd("Deleted", "cancelled")

# The names that Prefect gives to the states of runs that failed.
FAILED = ("Failed", "Crashed", "TimedOut")
