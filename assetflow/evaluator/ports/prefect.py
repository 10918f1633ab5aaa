"""Prefect, as the evaluator's loops call it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from assetflow.core.explain import DecisionExplanation
from assetflow.core.freshness.asset_freshness import StateChange
from assetflow.core.freshness.records import Asked
from assetflow.core.rules.adoption import Decided
from assetflow.core.rules.runs import RunChange, RunEnd, RunGoingOn
from assetflow.core.time.timetables import Tick
from assetflow.core.values.consumers import Automation, Consumer, Decision, MissedDeadline
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import RunContext
from assetflow.core.wire.deployments import Deployed, DeployedChanges, ShownAutomation

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


@dataclass(frozen=True)
class KnownConsumer:
    """A consumer of the ledger, with the text of its declaration and the id of the automation that shows it."""

    consumer: Consumer
    text: str
    automation_id: UUID | None = None


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

    async def changes(self) -> DeployedChanges[Deployed]:
        """Return the changes since the last call; the first call returns everything."""
        ...

    async def is_gone(self, deployment_id: UUID) -> bool: ...


class AutomationBoard(Protocol):
    """assetflow's automations in Prefect. What an automation should be is an object that only this port reads."""

    async def changes(self) -> DeployedChanges[ShownAutomation]:
        """Return the changes since the last call; the first call returns everything."""
        ...

    async def changed_since(self, moment: datetime) -> Sequence[ShownAutomation]: ...
    async def find(self, automation: UUID) -> ShownAutomation | None: ...
    def wanted(self, deployed: Deployed) -> Any:
        """Return the automation that a deployment should have."""
        ...

    def refused(self, deployment_id: UUID, name: str, options: ConsumerOptions | None, why: str) -> Any:
        """Return the automation of a deployment that is refused.

        Parameters:
            name: `flow/deployment`.
            options: the options by which the deployment still runs; `None` if it is not a consumer.
        """
        ...

    def is_in_step(self, shown: ShownAutomation, wanted: Any) -> bool: ...
    async def create(self, deployment_id: UUID, wanted: Any, *, enabled: bool) -> ShownAutomation: ...
    async def update(self, shown: ShownAutomation, wanted: Any) -> None: ...
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
    def states(self, ended_since: datetime | None) -> AsyncIterator[Mapping[UUID, datetime]]:
        """Yield, in parts, the time of the newest state of each run that goes on, or was retried and has to start.

        Parameters:
            ended_since: also of those that ended since then, with a time just before their end; `None` for none.
        """
        ...


class TimeRunMaker(Protocol):
    """Prefect's flow runs of timetables."""

    async def create(self, consumer: Consumer, tick: Tick, automation: Automation | None) -> UUID: ...
    async def withdraw(self, deployment_id: UUID, now: datetime) -> int:
        """Delete the upcoming runs of a deployment, and return their number."""
        ...

    async def skip_missed(self, deployment_id: UUID, now: datetime) -> int:
        """Delete the late runs of a deployment that are not the latest, and return their number."""
        ...


PastDecisions = Callable[[datetime], Sequence[AsyncIterator[Decided]]]


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
        past_decisions: returns readings of the decisions whose runs were created since a time, each newest first.
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
    past_decisions: PastDecisions
    check_binding: Callable[[], Awaitable[None]]
    patiently: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
