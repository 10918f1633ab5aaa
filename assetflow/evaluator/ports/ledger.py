"""The ledger, as the evaluator's loops call it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from assetflow.core.explain import DecisionExplanation
from assetflow.core.freshness.asset_freshness import AssetFreshness, StateChange
from assetflow.core.rules.runs import RunEnd, RunGoingOn
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import Recording
from assetflow.core.wire.deployments import Deployed, RefusedDeployment
from assetflow.evaluator.ports.prefect import (
    Json,
    KnownConsumer,
    Launch,
    Refused,
    RunWithoutNote,
    TimedConsumer,
    TimePassed,
    Written,
)
from assetflow.ledger.records import MissedDeadlineRecord, TimerRecord


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
    async def running(self, limit: int, after: UUID | None = None) -> Sequence[UUID]:
        """Return the runs that, as far as the ledger knows, go on: of decisions, and others of what is compared.

        They come in the order of their ids, from the one after `after` on.
        """
        ...

    async def is_compared(self, flow_run: UUID) -> bool:
        """Return True if what a flow run reads and makes is compared, so that its updates have to count first."""
        ...

    async def ended(self, flow_run: UUID, end: RunEnd) -> bool:
        """Record that a run has ended. Return False if the ledger does not know it, or its end is known already."""
        ...

    async def retried(self, states: Mapping[UUID, datetime], at: datetime | None = None) -> None:
        """Record which runs go on again that had ended as far as the ledger knows. Contract 4.7.

        Parameters:
            states: the time of the newest state of each run.
            at: when they left their final state, if Prefect tells.
        """
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


class ConsumerLedger(Protocol):
    """The ledger, as the registry calls it. `consumer` is the id of a consumer in the ledger."""

    async def consumers(self) -> Sequence[KnownConsumer]: ...
    async def deploy(self, deployed: Deployed, *, paused: bool) -> Consumer:
        """Add a consumer for a deployment.

        Raises:
            NameTaken
        """
        ...

    async def change(self, consumer: int, deployed: Deployed) -> None:
        """Give a consumer the schedule of its deployment.

        Raises:
            NameTaken
        """
        ...

    async def switch(self, consumer: int, *, paused: bool | None = None, held: bool | None = None) -> None: ...
    async def remove(self, consumer: int) -> None: ...
    async def set_automation(self, consumer: int, automation_id: UUID | None) -> None: ...
    async def set_edges(self, deployed: Deployed) -> None:
        """Store the assets that a deployment without a schedule produces and reads, for lineage and the data graph.

        Raises:
            InvalidSchedule: the flow cannot work beside those that are deployed (8.10).
        """
        ...

    async def drop_edges(self, deployment_id: UUID) -> None: ...
    async def without_schedule(self) -> Mapping[UUID, tuple[str, str]]:
        """Return the deployments that `set_edges` has stored in the data graph: their names and their declarations."""
        ...

    async def freshness(self) -> Sequence[AssetFreshness]:
        """Return how fresh the assets with a policy are, and what has to run for them."""
        ...

    async def automations_seen(self) -> datetime | None:
        """Return the timestamp up to which all changes of automations are in the ledger; `None` for a new ledger."""
        ...

    async def set_automations_seen(self, stamp: datetime) -> None: ...
    async def set_refused(self, refused: Sequence[RefusedDeployment]) -> None:
        """Store which deployments are refused, instead of those that were before."""
        ...

    async def set_notes(self, notes: Mapping[str, str]) -> None:
        """Store a note for each of these deployments, instead of those that were before."""
        ...
