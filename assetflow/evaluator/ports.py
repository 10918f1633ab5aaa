"""What the evaluator's loops need from outside: the ledger, and Prefect.

`process/ledger_thread.py` and `assetflow.prefect_io` implement these protocols, and `process/composition.py` puts the
implementations in. Tests put in simple fakes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from assetflow.core.codec import RunContext
from assetflow.core.consumers import Automation, Consumer, Decision, MissedDeadline
from assetflow.core.deployed import Changes, Deployed, Shown
from assetflow.core.events import Recording
from assetflow.core.explanation import DecisionExplanation
from assetflow.core.freshness.records import Asked
from assetflow.core.freshness.telling import StateChange
from assetflow.core.rules.adoption import Decided
from assetflow.core.run_changes import RunChange, RunEnd, RunGoingOn
from assetflow.core.time.timetables import Tick
from assetflow.ledger.records import MissedDeadlineRecord, TimerRecord

# A JSON object, as Prefect's API gives and takes it.
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """An event from Prefect that breaks a rule of contract 1 or 2; the ledger keeps it. Contract 2.6."""

    id: UUID
    event: Json
    reason: str
    rule: str | None = None


@dataclass(frozen=True)
class Written:
    """The result of a recording, for the log."""

    events: int = 0
    decisions: int = 0
    new_assets: Sequence[str] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class TimePassed:
    """The result of letting time act on timed consumers.

    Attributes:
        decisions: the number of decisions.
        next: the next instant at which time may change something, UTC; `None` if there is none.
        told: how many states of freshness policies changed, which has to be told.
    """

    decisions: int = 0
    next: datetime | None = None
    told: int = 0


@dataclass(frozen=True)
class Launch:
    """A decision without a run, the name of its consumer, and the automation that shows the consumer's schedule.

    Attributes:
        asked: what an Eager or Lazy flow is asked for; `None` for other decisions.
    """

    decision: Decision
    consumer: str
    automation: Automation | None = None
    asked: Asked | None = None


@dataclass(frozen=True)
class RunWithoutNote:
    """The run of a decision that, as far as the ledger knows, has no note yet."""

    decision: UUID
    consumer: str
    flow_run: UUID


@dataclass(frozen=True)
class TimedConsumer:
    """A consumer with a timetable, and the automation that shows its schedule."""

    consumer: Consumer
    automation: Automation | None = None


class EvaluatorLedger(Protocol):
    """The ledger, as the evaluator's loops call it."""

    async def record(self, recordings: Sequence[Recording]) -> Written: ...
    async def refuse(self, refused: Refused) -> None: ...
    async def waiting(self, limit: int, besides: Collection[int] = ()) -> Sequence[Launch]:
        """Return the decisions that have no run, oldest first, except those of the consumers in `besides`."""
        ...

    async def launched(self, decision: UUID, flow_run: UUID) -> None: ...
    async def without_note(self, limit: int) -> Sequence[RunWithoutNote]: ...
    async def explain(self, decision: UUID) -> DecisionExplanation: ...
    async def noted(self, decisions: Sequence[UUID]) -> None: ...
    async def attempt_failed(self, decision: UUID, reason: str) -> None: ...
    async def undeliverable(self, decision: UUID, reason: str) -> None: ...
    async def running(self, limit: int) -> Sequence[UUID]:
        """Return the runs that, as far as the ledger knows, go on: of decisions, and others of what is compared."""
        ...

    async def is_compared(self, flow_run: UUID) -> bool:
        """Return True if what a flow run reads and makes is compared, so that its updates have to count first."""
        ...

    async def ended(self, flow_run: UUID, end: RunEnd) -> bool:
        """Record that a run has ended. Return False if the ledger does not know it, or its end is known already."""
        ...

    async def compares(self, deployment: UUID | None = None) -> bool:
        """Return True if what the flow of a deployment reads and makes is compared; by default, if anything is."""
        ...

    async def knows_run(self, flow_run: UUID) -> bool:
        """Return True if the ledger knows a flow run: as that of a decision, or because it went on."""
        ...

    async def goes_on(self, run: RunGoingOn) -> None:
        """Record that a run goes on whose outputs are compared, whoever started it, and when it began. Contract 8.6."""
        ...

    async def began(self, flow_run: UUID, at: datetime) -> None:
        """Record when a run started that the ledger knows. Contract 8.6."""
        ...

    async def lacks_start(self, flow_run: UUID) -> bool:
        """Return True if a run of what is compared goes on, and the ledger has not heard that it started."""
        ...

    async def renew_lease(self) -> None:
        """Stay the evaluator of the ledger.

        Raises:
            LeaseLost: another process has become its evaluator.
        """
        ...

    async def note_decider(self, other: str | None) -> None:
        """Store the id of the other ledger that decides for this Prefect; `None` if this one decides."""
        ...

    async def cursor(self, name: str) -> datetime | None: ...
    async def set_cursor(self, name: str, moment: datetime) -> None: ...
    def logs_read(self, until: datetime) -> None:
        """Note up to when Prefect's logs are read: what changed before that is decided on with all its updates."""
        ...

    async def write_held_up(self, troubles: Sequence[Json]) -> None:
        """Store what the evaluator cannot do now, for readers of the ledger."""
        ...


class TimerLedger(Protocol):
    """The ledger, as the timers call it."""

    async def timed_consumers(self) -> Sequence[TimedConsumer]: ...
    async def timers(self) -> Sequence[TimerRecord]: ...
    async def keep_timers(self, timers: Sequence[TimerRecord]) -> None: ...
    async def drop_timers(self, consumers: Sequence[int]) -> None: ...


class ClockLedger(Protocol):
    """The ledger, as the clock calls it."""

    async def let_time_pass(self, until: datetime) -> TimePassed:
        """Decide instants up to one in order. Contract 9.6."""
        ...

    async def missed_deadlines(self, limit: int) -> Sequence[MissedDeadlineRecord]:
        """Return the missed deadlines that are not announced yet, oldest first."""
        ...

    async def deadlines_announced(self, numbers: Sequence[int]) -> None: ...


class FreshnessLedger(Protocol):
    """The ledger, as what tells of freshness calls it."""

    async def freshness_to_tell(self, limit: int) -> Sequence[StateChange]:
        """Return the changes of states that Prefect's log was not seen to have, oldest first."""
        ...

    async def freshness_posted(self, numbers: Sequence[int]) -> None: ...
    async def freshness_stored(self, numbers: Sequence[int]) -> None: ...


class Ledger(EvaluatorLedger, TimerLedger, ClockLedger, FreshnessLedger, Protocol):
    """The ledger, as the evaluator and its parts call it."""

    def commits(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Yield after each commit to the ledger, once for several, whichever process makes it.

        Raises:
            LedgerError: call it again.
        """
        ...


class ConsumerRegistry(Protocol):
    """Keeps the ledger's consumers in step with the deployments."""

    async def begin(self) -> None: ...
    async def sync(self) -> None: ...
    async def run(self, looked: Callable[[], None]) -> None: ...
    def inherited(self, deployment_id: UUID) -> str:
        """Return a fingerprint of the values that runs copy from a deployment; empty if they are not known yet."""
        ...


class DeploymentFeed(Protocol):
    """Prefect's deployments."""

    async def changes(self) -> Changes[Deployed]:
        """Return the changes since the last call; the first call returns everything."""
        ...

    async def is_gone(self, deployment_id: UUID) -> bool: ...


class AutomationBoard(Protocol):
    """assetflow's automations in Prefect. What an automation should be is an object that only this port reads."""

    async def changes(self) -> Changes[Shown]:
        """Return the changes since the last call; the first call returns everything."""
        ...

    async def changed_since(self, moment: datetime) -> Sequence[Shown]: ...
    async def find(self, automation: UUID) -> Shown | None: ...
    def wanted(self, deployed: Deployed) -> Any:
        """Return the automation that a deployment should have.

        Raises:
            UnsupportedDelivery: Prefect should decide, and would decide wrongly.
        """
        ...

    def is_in_step(self, shown: Shown, wanted: Any) -> bool: ...
    async def create(self, deployment_id: UUID, wanted: Any, *, enabled: bool) -> Shown: ...
    async def update(self, shown: Shown, wanted: Any) -> None: ...
    async def delete(self, automation: UUID) -> None: ...


@dataclass(frozen=True)
class PrefectDeployments:
    """Prefect, as the registry uses it.

    Attributes:
        changes: subscribes to deployments and automations: yields an event for each change from then on.
    """

    deployments: DeploymentFeed
    automations: AutomationBoard
    changes: Callable[[], AbstractAsyncContextManager[AsyncIterator[Json]]]


class UpdateLog(Protocol):
    """Prefect's stored events."""

    def between(self, since: datetime, until: datetime, names: Sequence[str]) -> AsyncIterator[Json]: ...
    async def number(self, since: datetime, until: datetime, names: Sequence[str]) -> int: ...
    async def counted(
        self, since: datetime, until: datetime, names: Sequence[str], minutes: int
    ) -> Mapping[datetime, int]: ...
    async def publish(self, events: Sequence[Json]) -> None: ...
    async def stored(self, ids: Sequence[UUID], since: datetime, until: datetime) -> Collection[UUID]: ...


class RecordingLog(Protocol):
    """Prefect's artifacts that hold recordings, or the events of runs that are too large for a context."""

    def updates_since(self, moment: datetime) -> AsyncIterator[Json]: ...
    async def keep_events(self, decision: Decision, consumer: str) -> str: ...


class NoteBoard(Protocol):
    """The notes on the pages of Prefect's flow runs."""

    async def present(self, runs: Mapping[UUID, str]) -> set[UUID]:
        """Return the runs that have their note; `runs` names each run's consumer."""
        ...

    async def write(self, explanation: DecisionExplanation) -> None: ...


class RunMaker(Protocol):
    """Prefect's flow runs of decisions."""

    async def create(self, decision: Decision, context: RunContext, automation: Automation | None) -> UUID: ...
    async def ended(self, runs: Sequence[UUID]) -> dict[UUID, RunEnd]:
        """Return the runs that have ended, and how."""
        ...


class RunsGoingOn(Protocol):
    """Prefect's flow runs that go on, of all deployments."""

    async def find(self, run: UUID) -> RunGoingOn | None: ...
    async def began(self, run: UUID) -> datetime | None: ...
    def all(self) -> AsyncIterator[RunGoingOn]: ...


class TimeRunMaker(Protocol):
    """Prefect's flow runs of timetables."""

    async def create(self, consumer: Consumer, tick: Tick, automation: Automation | None) -> UUID: ...
    async def withdraw(self, deployment_id: UUID, now: datetime) -> int:
        """Delete the upcoming runs of a deployment, and return their number."""
        ...


@dataclass(frozen=True)
class Prefect:
    """Prefect, as the evaluator uses it.

    Attributes:
        url: the address of its API, for people.
        new_updates: subscribes to updates of assets: yields the events that Prefect sends from then on.
        run_changes: subscribes to flow runs: yields what Prefect sends of their beginnings and ends.
        decision_event: returns the event that announces a decision and its run.
        deadline_event: returns the event that announces a missed deadline, from it and its consumer's name, deployment
            and automation.
        freshness_event: returns the event that tells of a changed state of an asset.
        past_decisions: yields the decisions whose runs were created since a time, newest first.
        check_binding: raises LedgerForeign if Prefect belongs to another ledger now.
        patiently: calls a function again while Prefect is too busy to answer.
    """

    url: str
    events: UpdateLog
    artifacts: RecordingLog
    runs: RunMaker
    open_runs: RunsGoingOn
    time_runs: TimeRunMaker
    notes: NoteBoard
    new_updates: Callable[[], AbstractAsyncContextManager[AsyncIterator[Json]]]
    run_changes: Callable[[], AbstractAsyncContextManager[AsyncIterator[RunChange]]]
    decision_event: Callable[[Launch, UUID], Json]
    deadline_event: Callable[[MissedDeadline, str, UUID, UUID | None], Json]
    freshness_event: Callable[[StateChange], Json]
    past_decisions: Callable[[datetime], AsyncIterator[Decided]]
    check_binding: Callable[[], Awaitable[None]]
    patiently: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
