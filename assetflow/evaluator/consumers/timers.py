"""Create a flow run in Prefect for each time of a timetable, ahead of the time. Contract 6.1.

`core.time.timers` decides which times have runs; this module creates and deletes them. The runs are Scheduled for their
time: Prefect shows them as upcoming, and its workers start them whether or not an evaluator is running then. Each look
compares the runs that should exist with those that the ledger knows, and makes up the difference. The process may die
after any step: runs are deleted before the ledger stores the reason, and created before it stores them. A run that is
created again has the same idempotency key.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from assetflow.core.rules.timers import Lead, Timer, follow, leaves_runs_behind, plan
from assetflow.core.time.timetables import Tick
from assetflow.core.values.consumers import Consumer
from assetflow.errors import PrefectRefused, PrefectUnreachable, Unsendable
from assetflow.evaluator.health import Health, logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.records import ConsumerRecord, TimerRecord
from assetflow.prefect_io.automation_text import shown_by
from assetflow.prefect_io.flow_runs import TimeRuns

LOOK_EVERY = 2.0
SETTLE_EVERY = 0.1
CREATED_PER_LOOK = 100
UNREACHABLE_IN_A_ROW = 3
AFTER_UNREACHABLE = timedelta(seconds=2)
AFTER_REFUSAL = timedelta(minutes=1)
_AT_ONCE = datetime.min.replace(tzinfo=UTC)


@dataclass
class _Work:
    """The work for one consumer: its timer as the ledger has it, and the ticks that wait for their runs.

    Attributes:
        timed: the consumer; `None` until the ledger's consumers are read.
        again: when to plan again; `None` while the timer is idle.
        not_before: when to try again after a failure.
        unreachable: True if Prefect did not answer the last request.
        skips: True if there may be runs of missed times that a later one makes up for.
    """

    record: TimerRecord
    timed: ConsumerRecord | None = None
    waiting: deque[Tick] = field(default_factory=deque[Tick])
    again: datetime | None = _AT_ONCE
    not_before: datetime = _AT_ONCE
    unreachable: bool = False
    skips: bool = False

    def mark_created(self, tick: Tick) -> None:
        self.waiting.popleft()
        self.record = replace(self.record, timer=self.record.timer.moved(tick.time))


class Timers:
    """Creates the runs of the consumers that have a timetable.

    Parameters:
        inherited: returns a fingerprint of the values that runs copy from a deployment when they are created
            (parameters, tags, work queue); empty if they are not known yet. If it changes, upcoming runs are replaced.
        on_created: called with each run that was created, and its tick.
        lead: how far ahead runs are created.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        runs: TimeRuns,
        inherited: Callable[[UUID], str],
        health: Health,
        now: Callable[[], datetime],
        on_created: Callable[[Consumer, Tick, UUID], None],
        lead: Lead | None = None,
    ) -> None:
        self._ledger = ledger
        self._reader, self._writer = ledger.reader.consumers, ledger.writer.consumers
        self._runs = runs
        self._inherited = inherited
        self._health = health
        self._now = now
        self._on_created = on_created
        self._lead = lead or Lead()
        self._work: dict[int, _Work] = {}
        self._knows_ledger = False
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        """Keep upcoming runs in step with the timetables, until cancelled.

        Raises:
            PrefectUnreachable, LedgerError: call it again, nothing is lost.
        """
        while True:
            await self.look()
            await asyncio.sleep(0 if self._is_behind(self._now()) else LOOK_EVERY)

    async def settled(self) -> None:
        """Return when all runs that can be created now exist.

        Raises:
            PrefectUnreachable, LedgerError
        """
        await self.look()
        while self._is_behind(self._now() + AFTER_UNREACHABLE):
            await asyncio.sleep(SETTLE_EVERY)
            await self.look()

    async def look(self) -> None:
        """Compare once the runs that should exist with those that do, and create what is missing, oldest times first.

        Raises:
            PrefectUnreachable, LedgerError: the next look does the rest.
        """
        async with self._looking:
            await self._update_timers()
            for work in self._work.values():
                self._plan(work)
            await self._create()
            await self._skip()
        if not any(work.unreachable for work in self._work.values()):
            self._health.up("times")

    def _is_behind(self, moment: datetime) -> bool:
        return any(work.waiting and work.not_before <= moment for work in self._work.values())

    async def _update_timers(self) -> None:
        """Bring the timers in step with the consumers."""
        if not self._knows_ledger:
            self._work = {each.consumer: _Work(each) for each in await self._ledger.call(self._reader.timers)}
            self._knows_ledger = True
        consumers = {each.consumer.id: each for each in await self._ledger.call(self._reader.with_times)}
        for number in [number for number in self._work if number not in consumers]:
            await self._drop(self._work[number].record)
        for number, timed in consumers.items():
            await self._update_timer(timed, self._work.get(number))

    async def _drop(self, record: TimerRecord) -> None:
        if not record.timer.is_idle:
            await self._runs.withdraw(record.deployment_id, self._now())
        await self._ledger.call(self._writer.drop_timers, [record.consumer])
        del self._work[record.consumer]

    async def _update_timer(self, timed: ConsumerRecord, work: _Work | None) -> None:
        consumer, now = timed.consumer, self._now()
        before = None if work is None else work.record
        timer = follow(before.timer if before else None, consumer, now)
        assert timer is not None, "consumers with times have a timer"
        inherited = self._inherited(consumer.deployment_id) or (before.inherited if before else "")
        # Also for a consumer that is new here: another ledger, which was lost since, may have created runs.
        if before is None or _must_withdraw(before, timer, inherited):
            number = await self._runs.withdraw(consumer.deployment_id, now)
            if number:
                logger.info("%s: upcoming runs deleted: %d", consumer.name, number)
            timer = timer.withdrawn(now)
        record = TimerRecord(consumer.id, consumer.name, consumer.deployment_id, timer, inherited)
        if work is None or record != before:
            await self._ledger.call(self._writer.keep_timers, [record])
            self._work[consumer.id] = _Work(record, timed)
        else:
            work.timed = timed

    def _plan(self, work: _Work) -> None:
        now = self._now()
        if work.waiting or work.again is None or work.again > now:
            return
        found = plan(work.record.timer, now, self._lead)
        work.waiting.extend(found.ticks)
        work.again = found.again
        work.skips = found.again is not None and work.record.timer.timetable.catchup == "latest"

    async def _create(self) -> None:
        """Create some runs, oldest times first. The ledger stores those that were created, whatever fails."""
        now, touched = self._now(), dict[int, _Work]()
        ready = [(each.waiting[0].time, number) for number, each in self._work.items() if each.waiting]
        heapq.heapify(ready)
        unreachable = 0
        try:
            for _ in range(CREATED_PER_LOOK):
                if not ready:
                    break
                _, number = heapq.heappop(ready)
                work = self._work[number]
                if work.not_before > now:
                    continue
                try:
                    await self._create_next(work)
                except PrefectUnreachable:
                    work.not_before, work.unreachable = now + AFTER_UNREACHABLE, True
                    unreachable += 1
                    if unreachable == UNREACHABLE_IN_A_ROW:
                        raise
                    continue
                touched[number] = work
                unreachable = 0
                if work.waiting:
                    heapq.heappush(ready, (work.waiting[0].time, number))
        finally:
            await self._keep(list(touched.values()))

    async def _skip(self) -> None:
        """Delete the runs of missed times that a later one makes up for, also those that were created in advance."""
        for work in [each for each in self._work.values() if each.skips and not each.waiting]:
            number = await self._runs.skip_missed(work.record.deployment_id, self._now())
            work.skips = False
            if number:
                logger.info("%s: missed times skipped: %d", work.record.name, number)

    async def _create_next(self, work: _Work) -> None:
        assert work.timed is not None, "only consumers that were read are planned"
        consumer, tick = work.timed.consumer, work.waiting[0]
        trouble = f"times of {consumer.name}"
        work.unreachable = False
        try:
            run = await self._runs.create(consumer, tick, shown_by(work.timed.automation_id, consumer))
        except (PrefectRefused, Unsendable) as error:
            # The times wait until the deployment is repaired; none is lost.
            self._health.down(trouble, error)
            work.not_before = self._now() + AFTER_REFUSAL
            return
        self._health.up(trouble)
        work.mark_created(tick)
        self._on_created(consumer, tick, run)

    async def _keep(self, touched: Sequence[_Work]) -> None:
        if touched:
            await self._ledger.call(self._writer.keep_timers, [work.record for work in touched])


def _must_withdraw(before: TimerRecord, timer: Timer, inherited: str) -> bool:
    if before.timer.is_idle:
        return False
    changed = bool(before.inherited) and before.inherited != inherited
    return changed or leaves_runs_behind(before.timer, timer)
