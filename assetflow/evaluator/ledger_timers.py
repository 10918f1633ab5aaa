"""The ledger's timers, as the evaluator calls them."""

from __future__ import annotations

from collections.abc import Sequence

from assetflow.evaluator.ledger_consumers import InThread
from assetflow.evaluator.timers import Timed
from assetflow.ledger import Ledger
from assetflow.ledger.records import ConsumerRecord, TimerRecord
from assetflow.prefect_io.flow_runs import Automation
from assetflow.prefect_io.wording import automation_name


class LedgerTimers:
    """A `TimerLedger` on a ledger.

    Parameters:
        in_thread: how the ledger, which blocks, is called.
    """

    def __init__(self, ledger: Ledger, in_thread: InThread) -> None:
        self._reader = ledger.reader
        self._writer = ledger.writer
        self._in_thread = in_thread

    async def consumers(self) -> Sequence[Timed]:
        records: list[ConsumerRecord] = await self._in_thread(self._reader.consumers_with_times)
        return [Timed(each.consumer, _automation(each)) for each in records]

    async def timers(self) -> Sequence[TimerRecord]:
        return await self._in_thread(self._reader.timers)

    async def keep(self, timers: Sequence[TimerRecord]) -> None:
        await self._in_thread(self._writer.keep_timers, timers)

    async def drop(self, consumers: Sequence[int]) -> None:
        await self._in_thread(self._writer.drop_timers, consumers)


def _automation(record: ConsumerRecord) -> Automation | None:
    if record.automation_id is None:
        return None
    return Automation(record.automation_id, automation_name(record.consumer.name, record.consumer.schedule))
