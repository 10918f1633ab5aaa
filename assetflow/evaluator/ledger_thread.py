"""The ledger under the evaluator's lease, in a thread of its own.

The ledger's calls block, so they run one after the other in the thread: `await ledger.call(ledger.writer.clock.run, …)`
returns what the call returns. Decisions that follow from it are in the ledger, where the launcher finds them.

On SQLite one process holds the lease; on Postgres one leads, and others may stand by.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar
from uuid import uuid4

from assetflow.errors import EvaluatorRunning, LedgerError, LedgerVersion
from assetflow.evaluator.health import Health, logger
from assetflow.ledger import Holder, Ledger
from assetflow.ledger.lease import LEASE_SECONDS, Role
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.sql.engine import CommitListener
from assetflow.ledger.write.writer import Writer

P = ParamSpec("P")
T = TypeVar("T")

LOOK_EVERY = 0.25
SHOW_EVERY = 2.0
# Prefect's logs are read every few seconds. What was read longer ago may lack updates.
READ_LATELY = timedelta(seconds=15)


class Leadership:
    """The lease of an evaluator, from waiting for it to giving it back.

    It is renewed in a thread of its own, also while the evaluator is busy with the ledger.

    Parameters:
        stand_by: True to wait while another evaluator leads; False to wait only until the lease of a dead one ends.
    """

    def __init__(self, ledger: Ledger, holder: Holder, *, stand_by: bool) -> None:
        self._ledger = ledger
        self._holder = holder
        self._stand_by = stand_by
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="assetflow-lease")
        self._health = Health()
        self._stands_by = False
        self._shown = 0.0
        self._renewed = 0.0

    async def gain(self) -> None:
        """Return when this evaluator leads.

        Raises:
            EvaluatorRunning: another one leads, and this one does not stand by.
            LedgerVersion: the ledger was upgraded meanwhile; this program is too old for it.
            LedgerError: the ledger cannot be used. An evaluator that stands by waits instead.
        """
        began = time.monotonic()
        while (obstacle := await self._take()) is not None:
            self._wait_for(obstacle, time.monotonic() - began)
            await self._show()
            await asyncio.sleep(LOOK_EVERY)
        if self._stands_by:
            logger.info("leading now")

    async def keep(self) -> None:
        """Renew the lease.

        Raises:
            LeaseLost: another evaluator leads.
            LedgerError
        """
        started = time.monotonic()
        await self._call(self._ledger.writer.lease.renew, self._holder)
        self._renewed = started

    async def confirm(self) -> None:
        """Renew the lease if it may have ended because this process stood still.

        Raises:
            as `keep`
        """
        if time.monotonic() - self._renewed >= LEASE_SECONDS:
            await self.keep()

    async def give_back(self) -> None:
        """Release the lease, so that another evaluator can lead at once. If this fails, the lease ends by itself."""
        with suppress(LedgerError):
            await self._call(self._ledger.writer.lease.release, self._holder)
        self._thread.shutdown()

    async def _take(self) -> LedgerError | None:
        """Take the lease. Return the error if it cannot be taken now, else `None`."""
        started = time.monotonic()
        try:
            await self._call(self._ledger.writer.lease.acquire, self._holder)
        except LedgerError as error:
            return error
        self._renewed = started
        return None

    def _wait_for(self, obstacle: LedgerError, waited: float) -> None:
        """Log why this evaluator waits, or raise the error if it is not to wait."""
        if isinstance(obstacle, EvaluatorRunning):
            patient = self._stand_by or waited <= LEASE_SECONDS + LOOK_EVERY
            if not (self._ledger.is_shared and patient):
                raise obstacle
            if self._stand_by and not self._stands_by:
                self._stands_by = True
                logger.info("standing by: %s", obstacle.message)
            self._health.up("ledger")
        elif isinstance(obstacle, LedgerVersion) or not self._stands_by:
            raise obstacle
        else:
            self._health.down("ledger", obstacle)

    async def _show(self) -> None:
        """Let `assetflow status` show that this evaluator stands by."""
        shows = self._stands_by and self._holder.role is Role.EVALUATOR
        if shows and time.monotonic() - self._shown >= SHOW_EVERY:
            self._shown = time.monotonic()
            with suppress(LedgerError):
                await self._call(self._ledger.writer.lease.stand_by, self._holder)

    async def _call(self, function: Callable[..., Any], *given: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *given))


class LedgerThread:
    """The ledger, opened by the evaluator that holds its lease: an asynchronous context manager.

    Parameters:
        place: the ledger's file or URL; `None` for the one in the settings.
        stand_by: True to wait while another evaluator is running on the ledger, if the ledger allows several.
        now: returns the time that is written.
        role: which lease of the ledger it holds.
        ahead: returns how far the ledger's clock is ahead of Prefect's.

    Attributes:
        ledger: the ledger. Use it only in functions that `call` runs.
    """

    def __init__(
        self,
        place: str | Path | None = None,
        *,
        stand_by: bool = False,
        now: Callable[[], datetime] | None = None,
        role: Role = Role.EVALUATOR,
        ahead: Callable[[], timedelta] = timedelta,
    ) -> None:
        self.ledger: Ledger
        self.now = now or (lambda: datetime.now(UTC) + ahead())
        self._ahead = ahead
        self._place = place
        self._stand_by = stand_by
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="assetflow-ledger")
        self._holder = Holder.this_process(uuid4(), role)
        self._leadership: Leadership
        self._logs_read: datetime | None = None

    async def __aenter__(self) -> Self:
        """Open the ledger and become its evaluator.

        Raises:
            LedgerError: the ledger cannot be opened.
            EvaluatorRunning: another evaluator is running on it, and this one is not to stand by, or cannot.
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

    @property
    def reader(self) -> Reader:
        return self.ledger.reader

    @property
    def writer(self) -> Writer:
        return self.ledger.writer

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that uses the ledger in the ledger's thread, and return its result.

        Raises:
            LeaseLost: this process stood still, and another evaluator has taken over.
        """
        await self._leadership.confirm()
        return await self._in_thread(partial(function, *args, **kwargs))

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def renew_lease(self) -> None:
        """Stay the evaluator of the ledger.

        Raises:
            LeaseLost: another process has become its evaluator.
        """
        await self._leadership.keep()

    @asynccontextmanager
    async def commits(self) -> AsyncGenerator[AsyncIterator[None]]:
        """Yield after each commit to the ledger, once for several, whichever process makes it.

        Raises:
            LedgerError: call it again.
        """
        # Not in the ledger's thread: the listener has a connection of its own, and waits.
        listener = await asyncio.to_thread(self.ledger.listen)
        try:
            yield _commits(listener)
        finally:
            await asyncio.to_thread(listener.close)

    # Times

    def by_ledger(self, moment: datetime) -> datetime:
        """Return by the ledger's clock what happened at a moment of Prefect's."""
        return moment + self._ahead()

    def logs_read(self, until: datetime) -> None:
        """Note up to when Prefect's logs are read: what changed before that is decided on with all its updates."""
        self._logs_read = self.by_ledger(until)

    @property
    def is_late(self) -> bool:
        """True if updates of before now may still be in Prefect's logs: at a start, or after an outage."""
        return self._logs_read is None or self.now() - self._logs_read > READ_LATELY

    async def cursor(self, name: str) -> datetime | None:
        """Return how far something was read, or `None`."""
        return await self.call(self.reader.moment, name)

    async def set_cursor(self, name: str, moment: datetime | None) -> None:
        """Store how far something is read."""
        await self.call(self.writer.set_cursor, name, None if moment is None else moment.isoformat())


async def _commits(listener: CommitListener) -> AsyncIterator[None]:
    while await asyncio.to_thread(listener.wait):
        yield
