"""Let time act on timed consumers: time gates, opening hours, waits and deadlines. Contract 9.6.

An instant is decided when Prefect's logs are read to some time after it, so that every update that became durable by
then counts. While Prefect does not answer, no instant is decided. After a downtime, all instants are decided in order,
each as of its time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from assetflow.crash_points import reach
from assetflow.evaluator.health import Health, Loop, logger
from assetflow.evaluator.ledger_thread import LedgerThread

# How often to look at least, if nothing is heard of the ledger.
LOOK_EVERY = 1.0
WHILE_DUE = 0.1


class Clock(Loop):
    """Decides instants in order.

    Parameters:
        read_until: returns the time up to which Prefect's logs are read; `None` before the first sweep.
        want_sweep: called to have the logs read now.
        settle: how long after an instant Prefect's logs have to be read before it is decided (ASSETFLOW_SETTLE).
        on_decided: called after decisions were made.
        on_told: called after states of freshness policies changed.
        on_looked: called after each look: deadlines may have been missed.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        read_until: Callable[[], datetime | None],
        want_sweep: Callable[[], None],
        health: Health,
        now: Callable[[], datetime],
        on_decided: Callable[[], None],
        on_told: Callable[[], None],
        on_looked: Callable[[], None],
        settle: timedelta,
    ) -> None:
        super().__init__("clock", health)
        self._ledger = ledger
        self._writer = ledger.writer.clock
        self._read_until = read_until
        self._want_sweep = want_sweep
        self._now = now
        self._on_decided = on_decided
        self._on_told = on_told
        self._on_looked = on_looked
        self._settle = settle
        self._next: datetime | None = None

    async def step(self) -> float:
        """Let time act; return the seconds until the next instant, if it is soon."""
        await self.look()
        if self._next is None:
            return LOOK_EVERY
        seconds = (self._next + self._settle - self._now()).total_seconds()
        return min(max(seconds, WHILE_DUE), LOOK_EVERY)

    async def look(self) -> None:
        """Decide what may be decided now.

        Raises:
            LedgerError
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
        is_due = self._next is not None and self._next + self._settle <= self._now()
        if is_due and read_until < self._now():
            self._want_sweep()
        self._on_looked()
