"""The ledger for asynchronous callers: its calls block, so they run one after the other in a thread of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid4

from assetflow.core.consumers import Decision
from assetflow.core.events import Recording
from assetflow.core.explanation import DecisionExplanation
from assetflow.errors import UnknownEvent
from assetflow.evaluator.leadership import Leadership
from assetflow.evaluator.ports import Launch, Refused, Running, Written
from assetflow.ledger import Holder, Ledger
from assetflow.ledger.explanations import decision_explanation
from assetflow.ledger.records import DecisionRecord
from assetflow.prefect_io.flow_runs import Automation
from assetflow.prefect_io.run_notes import Noteless
from assetflow.prefect_io.wording import automation_name

SOURCE = "prefect"


class LedgerThread:
    """An `EvaluatorLedger` on a ledger, held under a lease. An asynchronous context manager.

    Parameters:
        stand_by: wait while another evaluator works on it, if several can.

    Attributes:
        ledger: the ledger; only functions given to `call` may use it.
    """

    def __init__(
        self, place: str | Path | None = None, *, stand_by: bool = False, now: Callable[[], datetime] | None = None
    ) -> None:
        self.ledger: Ledger
        self._place = place
        self._stand_by = stand_by
        self._now = now or (lambda: datetime.now(UTC))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="assetflow-ledger")
        self._holder = Holder.this_process(uuid4())
        self._leadership: Leadership

    async def __aenter__(self) -> Self:
        """Open the ledger and become its evaluator.

        Raises:
            LedgerError: it cannot be opened.
            EvaluatorRunning: another evaluator works on it, and this one is not to stand by or cannot.
        """
        try:
            self.ledger = await self._in_thread(partial(Ledger.open, self._place, evaluator=self._holder.id))
            self._leadership = Leadership(self.ledger, self._holder, stand_by=self._stand_by)
            try:
                await self._leadership.gain()
            except BaseException:
                await self._leadership.give_back()
                self.ledger.close()
                raise
        except BaseException:
            self._thread.shutdown()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._leadership.give_back()
        self._thread.shutdown()
        self.ledger.close()

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """The result of a function that uses the ledger, run in the ledger's thread.

        Raises:
            LeaseLost: this process stood still, and another evaluator has taken over.
        """
        await self._leadership.confirm()
        return await self._in_thread(partial(function, *args, **kwargs))

    async def _in_thread(self, function: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def now(self) -> datetime:
        """The time that is written."""
        return self._now()

    async def record(self, recordings: Sequence[Recording]) -> Written:
        done = await self.call(self.ledger.writer.record, recordings, self._now())
        return Written(
            events=sum(len(recorded.events) for recorded, _ in done),
            decisions=sum(len(decisions) for _, decisions in done),
            new_assets=[uri for recorded, _ in done for uri in recorded.new_assets],
            warnings=[warning for recorded, _ in done for warning in recorded.warnings],
        )

    async def refuse(self, refused: Refused) -> None:
        given = (refused.event, refused.reason, refused.rule, SOURCE, refused.id)
        await self.call(self.ledger.writer.refuse, *given, self._now())

    async def waiting(self, limit: int, besides: Collection[int] = ()) -> Sequence[Launch]:
        return await self.call(self._waiting, limit, besides)

    async def launched(self, decision: UUID, flow_run: UUID) -> None:
        await self.call(self.ledger.writer.launched, decision, flow_run, self._now())

    async def without_note(self, limit: int) -> Sequence[Noteless]:
        records = await self.call(self.ledger.reader.without_note, limit=limit)
        return [Noteless(each.id, each.consumer_name, each.flow_run_id) for each in records]

    async def explain(self, decision: UUID) -> DecisionExplanation:
        """Not in the ledger's thread: to read what a large decision consumed takes long, and nobody waits for it."""
        return await asyncio.to_thread(self._explain, decision)

    async def noted(self, decisions: Sequence[UUID]) -> None:
        if decisions:
            await self.call(self.ledger.writer.noted, decisions, self._now())

    async def attempt_failed(self, decision: UUID, reason: str) -> None:
        await self.call(self.ledger.writer.attempt_failed, decision, reason)

    async def undeliverable(self, decision: UUID, reason: str) -> None:
        await self.call(self.ledger.writer.undeliverable, decision, reason, self._now())

    async def running(self, limit: int) -> Sequence[Running]:
        found = await self.call(self.ledger.reader.running, limit=limit)
        return [Running(each.id, each.flow_run_id) for each in found]

    async def ended(self, flow_run: UUID, state: str) -> bool:
        return await self.call(self.ledger.writer.ended, state, self._now(), flow_run_id=flow_run) is not None

    async def renew_lease(self) -> None:
        await self._leadership.keep()

    async def cursor(self, name: str) -> datetime | None:
        kept = await self.call(self.ledger.reader.cursor, name)
        return None if kept is None else datetime.fromisoformat(str(kept))

    async def set_cursor(self, name: str, moment: datetime) -> None:
        await self.call(self.ledger.writer.set_cursor, name, moment.isoformat())

    def _explain(self, decision: UUID) -> DecisionExplanation:
        reader = self.ledger.reader
        record = reader.decision(decision)
        if record is None:
            raise UnknownEvent(f"there is no decision {decision}")
        return decision_explanation(reader, record)

    def _waiting(self, limit: int, besides: Collection[int]) -> list[Launch]:
        return [
            Launch(
                Decision(each.id, each.consumer, each.deployment_id, each.target_key, events, each.made, each.kind),
                each.consumer_name,
                self._automation(each),
            )
            for each, events in self.ledger.reader.undelivered(limit=limit, besides=besides)
        ]

    def _automation(self, decision: DecisionRecord) -> Automation | None:
        record = self.ledger.reader.consumer(decision.consumer_name)
        if decision.automation_id is None or record is None:
            return None
        return Automation(decision.automation_id, automation_name(decision.consumer_name, record.consumer.schedule))
