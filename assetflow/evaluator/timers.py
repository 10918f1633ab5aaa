"""The time part of schedules (6.1): a flow run in Prefect for each time, made ahead of it.

Which times run is the core's rule (`assetflow.core.timers`); here it meets Prefect. The runs are Scheduled for their
time, so that Prefect shows them as upcoming and its workers start them, whether or not an evaluator is up then. Each
look compares what should be with what the ledger remembers and does the difference, in an order in which every step
may be the last: runs are withdrawn before the ledger hears of the reason, and made before it hears of them. Made again,
a run has the same idempotency key.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import UUID

from assetflow.core.consumers import Consumer
from assetflow.core.timers import Lead, Timer, follow, leaves_runs_behind, plan
from assetflow.core.timetables import Tick
from assetflow.errors import PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import Health
from assetflow.ledger.records import TimerRecord
from assetflow.prefect_io.flow_runs import Automation

logger = logging.getLogger("assetflow.evaluator")

LOOK_EVERY = 2.0
SETTLE_EVERY = 0.1
MADE_PER_LOOK = 100
UNREACHABLE_IN_A_ROW = 3
AFTER_UNREACHABLE = timedelta(seconds=2)
AFTER_REFUSAL = timedelta(minutes=1)
_AT_ONCE = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Timed:
    """A consumer with a time table, and the automation that shows its schedule."""

    consumer: Consumer
    automation: Automation | None = None


class TimerLedger(Protocol):
    """The ledger, as the timers call it."""

    async def consumers(self) -> Sequence[Timed]: ...
    async def timers(self) -> Sequence[TimerRecord]: ...
    async def keep(self, timers: Sequence[TimerRecord]) -> None: ...
    async def drop(self, consumers: Sequence[int]) -> None: ...


class TimeRunMaker(Protocol):
    """Prefect's runs of time tables."""

    async def create(self, consumer: Consumer, tick: Tick, automation: Automation | None) -> UUID: ...
    async def withdraw(self, deployment_id: UUID, now: datetime) -> int: ...


@dataclass
class _Line:
    """One consumer at work: its timer as the ledger has it, and the ticks that wait for their runs.

    Attributes:
        timed: none as long as it is not known whether the consumer is still there.
        again: when to plan again; none while the timer rests.
        not_before: when to try again after a failure.
    """

    record: TimerRecord
    timed: Timed | None = None
    waiting: deque[Tick] = field(default_factory=deque[Tick])
    again: datetime | None = _AT_ONCE
    not_before: datetime = _AT_ONCE

    def made(self, tick: Tick) -> None:
        self.waiting.popleft()
        self.record = replace(self.record, timer=self.record.timer.moved(tick.time))


class Timers:
    """Makes the runs of the consumers that have a time table.

    Parameters:
        inherited: what the runs of a deployment take over when they are made (parameters, tags, work queue); empty
            while that is not known. When it changes, upcoming runs are made anew.
        on_made: told of each run that is there now, with its tick.
    """

    def __init__(
        self,
        ledger: TimerLedger,
        runs: TimeRunMaker,
        inherited: Callable[[UUID], str],
        health: Health,
        now: Callable[[], datetime],
        on_made: Callable[[Consumer, Tick, UUID], None],
        lead: Lead | None = None,
    ) -> None:
        self._ledger = ledger
        self._runs = runs
        self._inherited = inherited
        self._health = health
        self._now = now
        self._on_made = on_made
        self._lead = lead or Lead()
        self._lines: dict[int, _Line] = {}
        self._knows_ledger = False
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        """Keep upcoming runs in step, for ever.

        Raises:
            PrefectUnreachable, LedgerError: run it again, nothing is lost.
        """
        while True:
            await self.look()
            self._health.up("times")
            await asyncio.sleep(0 if self._is_behind(self._now()) else LOOK_EVERY)

    async def settled(self) -> None:
        """Return when all runs that can be made now are there.

        Raises:
            PrefectUnreachable, LedgerError
        """
        await self.look()
        while self._is_behind(self._now() + AFTER_UNREACHABLE):
            await asyncio.sleep(SETTLE_EVERY)
            await self.look()

    async def look(self) -> None:
        """Compare once what should be with what is, and do what is missing, the oldest times first.

        Raises:
            PrefectUnreachable, LedgerError: what was not done is done at the next look.
        """
        async with self._looking:
            await self._follow()
            for line in self._lines.values():
                self._plan(line)
            await self._make()

    def _is_behind(self, moment: datetime) -> bool:
        return any(line.waiting and line.not_before <= moment for line in self._lines.values())

    async def _follow(self) -> None:
        """Bring the timers in step with the consumers."""
        if not self._knows_ledger:
            self._lines = {each.consumer: _Line(each) for each in await self._ledger.timers()}
            self._knows_ledger = True
        consumers = {each.consumer.id: each for each in await self._ledger.consumers()}
        for number in [number for number in self._lines if number not in consumers]:
            await self._forget(self._lines[number].record)
        for number, timed in consumers.items():
            await self._follow_one(timed, self._lines.get(number))

    async def _forget(self, record: TimerRecord) -> None:
        if not record.timer.rests:
            await self._runs.withdraw(record.deployment_id, self._now())
        await self._ledger.drop([record.consumer])
        del self._lines[record.consumer]

    async def _follow_one(self, timed: Timed, line: _Line | None) -> None:
        consumer, now = timed.consumer, self._now()
        before = None if line is None else line.record
        timer = follow(before.timer if before else None, consumer, now)
        assert timer is not None, "consumers with times have a timer"
        inherited = self._inherited(consumer.deployment_id) or (before.inherited if before else "")
        # Of a consumer that is new here there are none, unless another ledger, lost since, has made some.
        if before is None or _must_withdraw(before, timer, inherited):
            number = await self._runs.withdraw(consumer.deployment_id, now)
            if number:
                logger.info("%s: took %d upcoming runs away", consumer.name, number)
            timer = timer.withdrawn(now)
        record = TimerRecord(consumer.id, consumer.name, consumer.deployment_id, timer, inherited)
        if line is None or record != before:
            await self._ledger.keep([record])
            self._lines[consumer.id] = _Line(record, timed)
        else:
            line.timed = timed

    def _plan(self, line: _Line) -> None:
        now = self._now()
        if line.waiting or line.again is None or line.again > now:
            return
        found = plan(line.record.timer, now, self._lead)
        line.waiting.extend(found.ticks)
        line.again = found.again

    async def _make(self) -> None:
        """Make runs for a while, the oldest times first; what was made is kept, whatever fails."""
        now, touched = self._now(), dict[int, _Line]()
        ready = [(each.waiting[0].time, number) for number, each in self._lines.items() if each.waiting]
        heapq.heapify(ready)
        unreachable = 0
        try:
            for _ in range(MADE_PER_LOOK):
                if not ready:
                    break
                _, number = heapq.heappop(ready)
                line = self._lines[number]
                if line.not_before > now:
                    continue
                try:
                    await self._make_one(line)
                except PrefectUnreachable:
                    line.not_before = now + AFTER_UNREACHABLE
                    unreachable += 1
                    if unreachable == UNREACHABLE_IN_A_ROW:
                        raise
                    continue
                touched[number] = line
                unreachable = 0
                if line.waiting:
                    heapq.heappush(ready, (line.waiting[0].time, number))
        finally:
            await self._keep(list(touched.values()))

    async def _make_one(self, line: _Line) -> None:
        assert line.timed is not None, "what is planned is known"
        consumer, tick = line.timed.consumer, line.waiting[0]
        trouble = f"times of {consumer.name}"
        try:
            run = await self._runs.create(consumer, tick, line.timed.automation)
        except PrefectRefused as error:
            # The deployment may be repaired: its times wait, and none is lost.
            self._health.down(trouble, error)
            line.not_before = self._now() + AFTER_REFUSAL
            return
        self._health.up(trouble)
        line.made(tick)
        self._on_made(consumer, tick, run)

    async def _keep(self, lines: Sequence[_Line]) -> None:
        if lines:
            await self._ledger.keep([line.record for line in lines])


def _must_withdraw(before: TimerRecord, timer: Timer, inherited: str) -> bool:
    if before.timer.rests:
        return False
    changed = bool(before.inherited) and before.inherited != inherited
    return changed or leaves_runs_behind(before.timer, timer)
