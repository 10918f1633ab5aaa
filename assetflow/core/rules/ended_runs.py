"""The names of flow runs, those that have ended, and what makes a failed one good again. Contract 4.8, 4.9."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote
from typing import Literal, NamedTuple, Protocol
from uuid import UUID, uuid5

from assetflow.core.freshness.records import RunState
from assetflow.core.json_data import fit_text
from assetflow.core.shapes import HIDDEN, TextOrNull, called, shape
from assetflow.core.values.keeping import Cause, CauseKind
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


def retry_command(flow: str, key: str | None) -> str:
    """Return the command that lets a flow, or one of its keys, try again."""
    of_key = "" if key is None else f" --key {quote(key)}"
    return f"assetflow retry {quote(flow)}{of_key}"


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

    @property
    def retry(self) -> str:
        """The command that lets it try again."""
        return retry_command(self.last.flow, self.last.target_key)


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


ASSETS_SHOWN = 3

_SAID: Mapping[CauseKind, str] = {
    "missing": "missing",
    "data": "changed",
    "code": "new code",
    "dependency": "new or gone",
    "freshness": "due",
    "backfill": "backfill",
}


class Named(Protocol):
    """An object with the URI and the name of an asset."""

    @property
    def uri(self) -> str: ...

    @property
    def name(self) -> str: ...


def run_name(
    decision: UUID,
    target_key: str | None,
    consumed: Iterable[Named],
    because: Iterable[Cause] = (),
    consumer: str = "",
) -> str:
    """Return the name of a decision's flow run: its key or its assets, and the start of the decision's id.

    The run of an Eager or Lazy flow consumes nothing: it has the name of the flow, and ends with the reason.

    Parameters:
        consumed: the assets of the consumed events, in the order of their first event.
        because: why an Eager or Lazy flow was asked for the run.
        consumer: its name, `flow/deployment`.
    """
    what = target_key if target_key is not None else listed(consumed, "-") or consumer.rpartition("/")[0]
    name, reason = f"{what or 'refresh'}-{str(decision)[:6]}", _reason(because)
    return fit_text(f"{name} · {reason}" if reason else name)


def listed(assets: Iterable[Named], separator: str) -> str:
    """Return the short names of the first three assets, with "more" if there are more."""
    names = list(dict.fromkeys(map(_short, assets)))
    shown = names[:ASSETS_SHOWN] + (["more"] if len(names) > ASSETS_SHOWN else [])
    return separator.join(shown)


def _reason(because: Iterable[Cause]) -> str:
    """Return the first reason in a few words, and how many others there are: "raw changed and 1 more"."""
    reasons = list(dict.fromkeys(f"{_last_part(cause.uri)} {_SAID[cause.kind]}".strip() for cause in because))
    if not reasons:
        return ""
    return reasons[0] if len(reasons) == 1 else f"{reasons[0]} and {len(reasons) - 1} more"


def _short(asset: Named) -> str:
    return asset.name if asset.name != asset.uri else _last_part(asset.uri)


def _last_part(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2][:60]


class RunEnd(NamedTuple):
    """How a flow run ended.

    Attributes:
        state: the name of its last state, which a flow may choose unless it failed: "Completed", "Skipped", "TimedOut".
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
        anew: it had ended before, and somebody sets another final state.
    """

    run: UUID
    deployment: UUID | None
    end: RunEnd | None = None
    began: datetime | None = None
    retried: datetime | None = None
    anew: bool = False


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

    def moved(self, by: Callable[[datetime], datetime]) -> RunGoingOn:
        """Return the run with its moments by another clock."""
        return self._replace(asked=by(self.asked), began=None if self.began is None else by(self.began))


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
