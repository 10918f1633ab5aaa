"""Rebuilding a ledger: what an earlier one decided is read from Prefect's flow runs before updates are replayed."""

from __future__ import annotations

from datetime import datetime

from assetflow.evaluator.health import logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.prefect_io.past_runs import past_decisions
from assetflow.prefect_io.rest import PrefectApi

# In the ledger from the first replay into it until that is done, so that the next process goes on rebuilding.
CURSOR = "rebuild"


class Rebuild:
    """What surrounds the first replay into a new ledger; nothing for any other ledger."""

    def __init__(self, api: PrefectApi, ledger: LedgerThread) -> None:
        self._api = api
        self._ledger = ledger

    async def plan(self, since: datetime) -> None:
        """A replay begins; only into a ledger without events it is a rebuild.

        Raises:
            LedgerError
        """
        status = await self._ledger.call(self._ledger.ledger.reader.status)
        if not status.last_event:
            await self._ledger.set_cursor(CURSOR, since)

    async def begin(self) -> None:
        """Let the decisions that have runs be taken over.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        if await self._ledger.cursor(CURSOR) is None:
            return
        decided = await past_decisions(self._api)
        taken = await self._ledger.call(self._ledger.ledger.writer.begin_adoption, decided)
        logger.info("rebuilding: %d decisions of an earlier ledger have their runs in Prefect", taken)

    async def finish(self) -> None:
        """What was there to be found is recorded.

        Raises:
            LedgerError
        """
        if await self._ledger.cursor(CURSOR) is None:
            return
        await self._ledger.call(self._ledger.ledger.writer.end_adoption, self._ledger.now())
        await self._ledger.call(self._ledger.ledger.writer.set_cursor, CURSOR, None)
        logger.info("rebuilding: done")
