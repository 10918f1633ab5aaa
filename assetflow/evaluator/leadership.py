"""Who evaluates: on SQLite one evaluator and no other, on Postgres one that leads while others stand by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from assetflow.errors import EvaluatorRunning, LedgerError, LedgerVersion
from assetflow.evaluator.health import Health, logger
from assetflow.ledger import Holder, Ledger
from assetflow.ledger.lease import LEASE_SECONDS

LOOK_EVERY = 0.25
SHOW_EVERY = 2.0


class Leadership:
    """The lease of one evaluator, from waiting for it to giving it back.

    It has a thread of its own, so that the lease is renewed while the evaluator is busy with the ledger.

    Parameters:
        stand_by: wait as long as another one leads; without it, only as long as a dead one's lease may last.
    """

    def __init__(self, ledger: Ledger, holder: Holder, *, stand_by: bool) -> None:
        self._ledger = ledger
        self._holder = holder
        self._stand_by = stand_by
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="assetflow-lease")
        self._health = Health()
        self._renewed = 0.0

    async def gain(self) -> None:
        """Return when this evaluator leads.

        Raises:
            EvaluatorRunning: another one does, and nobody stands by.
            LedgerVersion: the ledger was upgraded meanwhile; this program is too old for it.
            LedgerError: it cannot be used. Who stands by waits until it can be again.
        """
        began, shown = time.monotonic(), 0.0
        while True:
            started = time.monotonic()
            try:
                await self._call(self._ledger.writer.acquire_lease, self._holder)
                self._health.up("ledger")
                break
            except EvaluatorRunning as error:
                self._refuse_to_wait(error, started - began)
                self._health.up("ledger")
                if not shown and self._stand_by:
                    logger.info("standing by: %s", error.message)
            except LedgerVersion:
                raise
            except LedgerError as error:
                if not shown:
                    raise
                self._health.down("ledger", error)
            if started - shown >= SHOW_EVERY:
                shown = started
                await self._show()
            await asyncio.sleep(LOOK_EVERY)
        self._renewed = started
        if shown and self._stand_by:
            logger.info("leading now")

    async def keep(self) -> None:
        """Give a sign of life.

        Raises:
            LeaseLost: another evaluator leads.
            LedgerError
        """
        started = time.monotonic()
        await self._call(self._ledger.writer.renew_lease, self._holder)
        self._renewed = started

    async def confirm(self) -> None:
        """Make sure, after standing still for longer than the lease lasts, that nobody else leads.

        Raises:
            as `keep`
        """
        if time.monotonic() - self._renewed >= LEASE_SECONDS:
            await self.keep()

    async def give_back(self) -> None:
        """Let another one lead at once. If the ledger cannot be reached, the lease ends by itself."""
        with suppress(LedgerError):
            await self._call(self._ledger.writer.release_lease, self._holder)
        self._thread.shutdown()

    def _refuse_to_wait(self, error: EvaluatorRunning, waited: float) -> None:
        if not self._ledger.is_shared or (not self._stand_by and waited > LEASE_SECONDS + LOOK_EVERY):
            raise error

    async def _show(self) -> None:
        if self._stand_by:
            with suppress(LedgerError):
                await self._call(self._ledger.writer.stand_by, self._holder)

    async def _call(self, function: Callable[..., Any], *given: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *given))
