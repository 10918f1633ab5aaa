"""What the evaluator's loops need from others: the ledger, Prefect's logs, Prefect's flow runs, the registry.

The adapters are `ledger_thread`, `assetflow.prefect_io` and `registry`; tests put simple fakes here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from assetflow.core.codec import RunContext
from assetflow.core.consumers import Decision
from assetflow.core.events import Recording
from assetflow.core.explanation import DecisionExplanation
from assetflow.prefect_io.flow_runs import Automation
from assetflow.prefect_io.rest import Json
from assetflow.prefect_io.run_notes import Noteless


@dataclass(frozen=True)
class Refused:
    """An event from Prefect that breaks chapters 1 or 2: kept, with the reason (2.6)."""

    id: UUID
    event: Json
    reason: str
    rule: str | None = None


@dataclass(frozen=True)
class Written:
    """What recording led to, as far as the log tells it."""

    events: int = 0
    decisions: int = 0
    new_assets: Sequence[str] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class Launch:
    """A decision that has no run yet."""

    decision: Decision
    consumer: str
    automation: Automation | None = None


@dataclass(frozen=True)
class Running:
    """A decision whose run has not ended, as far as the ledger knows."""

    decision: UUID
    flow_run: UUID


class EvaluatorLedger(Protocol):
    """The ledger, as the loops call it."""

    async def record(self, recordings: Sequence[Recording]) -> Written: ...
    async def refuse(self, refused: Refused) -> None: ...
    async def waiting(self, limit: int, besides: Collection[int] = ()) -> Sequence[Launch]:
        """The decisions that have no run, oldest first, without those of some consumers."""
        ...

    async def launched(self, decision: UUID, flow_run: UUID) -> None: ...
    async def without_note(self, limit: int) -> Sequence[Noteless]: ...
    async def explain(self, decision: UUID) -> DecisionExplanation: ...
    async def noted(self, decisions: Sequence[UUID]) -> None: ...
    async def attempt_failed(self, decision: UUID, reason: str) -> None: ...
    async def undeliverable(self, decision: UUID, reason: str) -> None: ...
    async def running(self, limit: int) -> Sequence[Running]: ...
    async def ended(self, flow_run: UUID, state: str) -> bool:
        """Write that a run has ended; whether it was the run of a decision, and not known yet."""
        ...

    async def renew_lease(self) -> None:
        """Stay the evaluator; raises LeaseLost when another one is."""
        ...

    async def cursor(self, name: str) -> datetime | None: ...
    async def set_cursor(self, name: str, moment: datetime) -> None: ...


class ConsumerRegistry(Protocol):
    """Keeps the ledger's consumers in step with the deployments."""

    async def begin(self) -> None: ...
    async def sync(self) -> None: ...
    async def run(self) -> None: ...
    def inherited(self, deployment_id: UUID) -> str:
        """What runs of a deployment take over when they are made; empty while that is not known."""
        ...


class UpdateLog(Protocol):
    """Prefect's stored events."""

    def between(self, since: datetime, until: datetime, names: Sequence[str]) -> AsyncIterator[Json]: ...
    async def publish(self, events: Sequence[Json]) -> None: ...


class RecordingLog(Protocol):
    """The artifacts that hold recordings, and the events of runs that are too large for a context."""

    def updates_since(self, moment: datetime) -> AsyncIterator[Json]: ...
    async def keep_events(self, decision: Decision) -> str: ...


class NoteBoard(Protocol):
    """The notes on the pages of Prefect's flow runs."""

    async def present(self, wanted: Sequence[Noteless]) -> set[UUID]: ...
    async def write(self, note: Json) -> None: ...


class RunMaker(Protocol):
    """Prefect's flow runs."""

    async def create(self, decision: Decision, context: RunContext, automation: Automation | None) -> UUID: ...
    async def ended(self, runs: Sequence[UUID]) -> dict[UUID, str]: ...
