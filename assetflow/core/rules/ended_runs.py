"""Flow runs that have ended, and what makes a failed one good again. Contract 4.8, 4.9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID, uuid5

from assetflow.core.freshness.records import RunState
from assetflow.core.shapes import HIDDEN, TextOrNull, called, shape
from assetflow.core.values.words import at, count

StartedBy = Literal["decision", "time", "hand"]
FAILED_OUTCOMES: tuple[RunState, ...] = ("failed", "crashed")
_NAMESPACE = UUID("0f0a5f43-9a0e-5d21-8f0e-6a2f6d6f0c48")


@shape
class EndedRun:
    """A flow run of a consumer or of a maker that has ended."""

    number: int
    """Counts up in the order in which the ledger heard of the ends."""
    flow_run_id: UUID
    name: str
    """Its name in Prefect."""
    deployment_id: UUID
    flow: str
    """Its flow and deployment, `flow/deployment`."""
    target_key: str | None
    state: str
    """Its final state, as Prefect names it."""
    outcome: RunState
    """The type of its final state."""
    started_by: StartedBy
    """`decision`: assetflow started it for updates, an Eager or Lazy flow, or a backfill. `time`: a timetable, or a
    schedule of Prefect. `hand`: anything else."""
    decision: UUID | None = field(metadata=called("decision_id"))
    """The decision that it belongs to."""
    asked: datetime
    """When it was created, or due if a timetable made it."""
    began: datetime | None
    ended: datetime
    error: TextOrNull
    """The message of its final state, if it failed."""
    repeated: bool = False
    """A retry of 8.7 follows it."""
    state_id: UUID = field(default=UUID(int=0), metadata=HIDDEN)
    state_at: datetime | None = field(default=None, metadata=HIDDEN)

    @property
    def has_failed(self) -> bool:
        return self.outcome in FAILED_OUTCOMES

    def as_maker(self) -> str:
        """Return how the last run of a maker ended: "orders-producer/shop crashed at 17:12: no memory"."""
        key = "" if self.target_key is None else f" for {self.target_key}"
        return f"{self.flow} {self.outcome}{key} at {at(self.ended)}" + (f": {self.error}" if self.error else "")


@dataclass(frozen=True)
class FailedForGood:
    """A run that failed for good, which becomes one event in Prefect. Contract 4.8.

    Attributes:
        below: the flows further down that wait for what it makes, the nearest first.
        posted: when the event was sent to Prefect last, UTC; `None` if it was not.
        not_made: the URIs of the outlets of its deployment that it did not update.
    """

    run: EndedRun
    below: Sequence[str] = ()
    posted: datetime | None = None
    not_made: Sequence[str] = ()
    is_good = False

    @property
    def number(self) -> int:
        return self.run.number

    @property
    def id(self) -> UUID:
        """The id of the event: it follows from run and state (4.8)."""
        return uuid5(_NAMESPACE, f"{self.run.flow_run_id}|{self.run.state_id}")

    @property
    def at(self) -> datetime:
        """When the event occurred, by Prefect's clock."""
        return self.run.state_at or self.run.ended

    def describe(self) -> str:
        """Return the failure in words: "report/daily failed: no such file"."""
        key = "" if self.run.target_key is None else f" for {self.run.target_key}"
        waiting = f"; {count(len(self.below), 'flow')} further down" if self.below else ""
        return f"{self.run.flow}{key} {self.run.outcome}: {self.run.error or self.run.state}{waiting}"


@shape
class Failing:
    """What failed and was not made good: a flow, or one of its keys, since its last good run. Contract 4.9."""

    last: EndedRun = field(metadata=called("last_run"))
    times: int
    """How many of its runs have failed since then."""
    since: datetime
    """When the first of them ended."""

    @property
    def what(self) -> str:
        """The flow, with the key."""
        return self.last.flow if self.last.target_key is None else f"{self.last.flow} {self.last.target_key}"

    @property
    def words(self) -> str:
        """How often and since when it fails, and why: "11 times since 09:12, last: no such file"."""
        error = self.last.error or self.last.state
        return error if self.times == 1 else f"{count(self.times, 'time')} since {at(self.since)}, last: {error}"

    def describe(self) -> str:
        """Return the same as a sentence: "report/daily failed 11 times since 09:12, last: no such file"."""
        return f"{self.what} {self.last.outcome}{':' if self.times == 1 else ''} {self.words}"


def is_made_good(run: EndedRun, completed: datetime | None, updates: Mapping[str, datetime | None]) -> bool:
    """Return True if what failed was made good since. Contract 4.9.

    Parameters:
        run: a run that failed.
        completed: when a run of the same deployment and key completed last.
        updates: each asset that the deployment makes, by URI, with its newest update by another run, of the run's key
            if it has one.
    """
    moments = [completed] if completed is not None and run.ended < completed else list(updates.values())
    return bool(moments) and all(each is not None and run.ended < each for each in moments)
