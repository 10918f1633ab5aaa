"""Hold the lease of a ledger: on SQLite there is one evaluator, on Postgres one leads and others may stand by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any, cast

from assetflow.core.values.words import iso
from assetflow.errors import EvaluatorRunning, LedgerError, LedgerVersion
from assetflow.evaluator.health import Health, logger
from assetflow.evaluator.ports import EvaluatorLedger
from assetflow.ledger import Holder, Ledger
from assetflow.ledger.lease import LEASE_SECONDS, Role
from assetflow.ledger.read.judging import HELD_UP
from assetflow.ledger.read.reader import Reader

LOOK_EVERY = 0.25
SHOW_EVERY = 2.0


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


STORE_EVERY = 2.0


@dataclass(frozen=True)
class HeldUp:
    """Something that the evaluator cannot do now, since when, and why."""

    name: str
    since: datetime
    reason: str


class HeldUpWriter:
    """Writes to the ledger what the evaluator cannot do, whenever that changes."""

    def __init__(self, ledger: EvaluatorLedger, health: Health) -> None:
        self._ledger = ledger
        self._health = health

    async def run(self) -> None:
        """Write until cancelled. Replace first what an earlier evaluator wrote.

        Raises:
            LedgerError: call it again.
        """
        written: list[dict[str, Any]] | None = None
        while True:
            self._health.up("reporting what is held up")
            now = [asdict(each) | {"since": iso(each.since)} for each in self._found()]
            if now != written:
                await self._ledger.write_held_up(now)
                written = now
            await asyncio.sleep(STORE_EVERY)

    def _found(self) -> list[HeldUp]:
        since = self._health.since
        return [HeldUp(name, since[name], reason) for name, reason in self._health.troubles.items()]


def held_up(reader: Reader) -> list[HeldUp]:
    """Return what the evaluator could not do when it last wrote to the ledger."""
    kept = cast("list[dict[str, str]]", reader.cursor(HELD_UP) or [])
    return [HeldUp(each["name"], datetime.fromisoformat(each["since"]), each["reason"]) for each in kept]
