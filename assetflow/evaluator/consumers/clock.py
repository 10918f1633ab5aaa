"""Let time act on timed consumers: time gates, opening hours, waits and deadlines. Contract 9.6.

An instant is decided when Prefect's logs are read to some time after it, so that every update that became durable by
then counts. While Prefect does not answer, no instant is decided. After a downtime, all instants are decided in order,
each as of its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from assetflow.core.values.consumers import MissedDeadline
from assetflow.crash_points import reach
from assetflow.evaluator.health import Health, heard, logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.prefect_io.logs import EventLog
from assetflow.prefect_io.own_events import deadline_missed

# How often to look at least, if nothing is heard of the ledger.
LOOK_EVERY = 1.0
WHILE_DUE = 0.1
ANNOUNCED_AT_ONCE = 50
# Prefect's log has an event at most five seconds after Prefect's answer, or some more on a busy machine.
POSTED_AGAIN = timedelta(seconds=30)

_NEVER = datetime.min.replace(tzinfo=UTC)


class Clock:
    """Decides instants in order, and announces missed deadlines.

    Parameters:
        read_until: returns the time up to which Prefect's logs are read; `None` before the first sweep.
        want_sweep: called to have the logs read now.
        settle: how long after an instant Prefect's logs have to be read before it is decided (ASSETFLOW_SETTLE).
        on_decided: called after decisions were made.
        on_told: called after states of freshness policies changed.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        events: EventLog,
        read_until: Callable[[], datetime | None],
        want_sweep: Callable[[], None],
        health: Health,
        now: Callable[[], datetime],
        on_decided: Callable[[], None],
        on_told: Callable[[], None],
        settle: timedelta,
    ) -> None:
        self._ledger = ledger
        self._writer = ledger.writer.clock
        self._events = events
        self._read_until = read_until
        self._want_sweep = want_sweep
        self._health = health
        self._now = now
        self._on_decided = on_decided
        self._on_told = on_told
        self._settle = settle
        self._next: datetime | None = None
        # When the event of each missed deadline that Prefect's log did not have was posted.
        self._posted: dict[int, datetime] = {}
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look now: another process may have added an instant."""
        self._wake.set()

    async def run(self) -> None:
        """Let time act, until cancelled.

        Raises:
            PrefectUnreachable, LedgerError: call it again, nothing is lost.
        """
        while True:
            self._wake.clear()
            await self.look()
            self._health.up("clock")
            await heard(self._wake, self._pause())

    async def look(self) -> None:
        """Decide what may be decided now, and announce the deadlines that were missed.

        Raises:
            PrefectUnreachable, LedgerError
        """
        read_until = self._read_until()
        if read_until is None:
            return
        made = 0
        while True:
            until = read_until - self._settle
            if self._next is not None and self._next <= until:
                reach("between-reading-and-instant")
            passed = await self._ledger.call(self._writer.run, until, self._ledger.now())
            made += len(passed.decisions)
            if passed.policy_changes:
                self._on_told()
            self._next = passed.next
            if passed.next is None or passed.next > until:
                break
        if made:
            logger.info("instants decided up to %s, decisions made: %d", until.isoformat(timespec="seconds"), made)
            self._on_decided()
        if self._is_due() and read_until < self._now():
            self._want_sweep()
        await self._announce()

    def _is_due(self) -> bool:
        return self._next is not None and self._next + self._settle <= self._now()

    def _pause(self) -> float:
        if self._next is None:
            return LOOK_EVERY
        seconds = (self._next + self._settle - self._now()).total_seconds()
        return min(max(seconds, WHILE_DUE), LOOK_EVERY)

    async def _announce(self) -> None:
        """Post the events of missed deadlines until Prefect's log has them: Prefect may lose one after its answer.

        Each has an id of its own, so that Prefect stores it once.
        """
        missed = await self._ledger.call(self._writer.to_announce, ANNOUNCED_AT_ONCE)
        if not missed:
            return
        events = {
            each.number: deadline_missed(each, each.consumer_name, each.deployment_id, each.automation_id)
            for each in missed
        }
        moments = [each.at for each in missed]
        known = await self._events.stored([UUID(event["id"]) for event in events.values()], min(moments), max(moments))
        if stored := [number for number, event in events.items() if UUID(event["id"]) in known]:
            reach("between-missed-deadline-and-mark")
            await self._ledger.call(self._writer.announced, stored, self._ledger.now())
            self._posted = {number: at for number, at in self._posted.items() if number not in stored}
        waiting = self._now() - POSTED_AGAIN
        lacking = [
            each for each in missed if each.number not in stored and self._posted.get(each.number, _NEVER) < waiting
        ]
        if lacking:
            reach("between-instant-and-missed-deadline")
            await self._events.publish([events[each.number] for each in lacking])
            for each in lacking:
                self._note_posted(each.number, each.consumer_name, each)

    def _note_posted(self, number: int, consumer: str, missed: MissedDeadline) -> None:
        if number not in self._posted:
            key = "" if missed.target_key is None else f", partition {missed.target_key}"
            logger.warning("%s missed the deadline of %s%s", consumer, missed.due.isoformat(timespec="seconds"), key)
        self._posted[number] = self._now()
