"""Complete a ledger that lacks decisions: an empty one that is rebuilt, or an older one that was restored.

The decisions are read from Prefect's flow runs, and the ledger adopts them before it records updates.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from assetflow.core.rules.adoption import Decided
from assetflow.evaluator.health import logger
from assetflow.evaluator.incoming.catch_up import Sweeps
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.process.prune import CURSOR as PRUNED
from assetflow.prefect_io.open_runs import past_decisions
from assetflow.prefect_io.rest import PrefectApi

# The cursor that holds the start of a rebuild until it is done, so that the next process goes on with it.
CURSOR = "rebuild"
# The cursor up to which the ledger has adopted the decisions of Prefect's runs.
ADOPTED = "adopted"
# How much the clocks of the evaluator and of Prefect may differ.
CLOCKS = timedelta(hours=1)
# A ledger that knows so many decisions in a row, the newest ones, lacks none.
ENOUGH = 100


class Rebuild:
    """The steps before and after the first sweep of a ledger that lacks decisions; for others they do nothing."""

    def __init__(self, ledger: LedgerThread, api: PrefectApi) -> None:
        self._ledger = ledger
        self._reader, self._writer = ledger.reader, ledger.writer
        self._api = api
        self._newest: datetime | None = None

    async def plan(self, since: datetime) -> None:
        """Note that a replay begins. It is a rebuild if the ledger has no events.

        Raises:
            LedgerError
        """
        if not (await self._ledger.call(self._reader.status)).last_event:
            await self._ledger.set_cursor(CURSOR, since)

    async def begin(self) -> None:
        """Let the ledger adopt the decisions that have runs, if it lacks some.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        since = await self._ledger.cursor(CURSOR)
        if since is None:
            since = await self._lacking_since()
        if since is None:
            return
        decided = {each.id: each for found in past_decisions(self._api, since - CLOCKS) async for each in found}
        self._newest = max((each.launched for each in decided.values()), default=None)
        lacking = await self._ledger.call(self._writer.events.begin_adoption, list(decided.values()))
        logger.info("rebuilding: %d decisions that this ledger does not know have their runs in Prefect", lacking)

    async def finish(self) -> None:
        """Finish the rebuild: every update that Prefect still has is now in the ledger.

        Raises:
            LedgerError
        """
        if await self._ledger.cursor(CURSOR) is None:
            return
        await self._ledger.call(self._writer.events.end_adoption, self._ledger.now())
        if self._newest is not None:
            # Decisions whose updates are gone stay unknown; they must not cause another rebuild.
            await self._ledger.set_cursor(ADOPTED, self._newest)
        await self._ledger.set_cursor(CURSOR, None)
        logger.info("rebuilding: done")

    async def _lacking_since(self) -> datetime | None:
        """Return the time since which the ledger lacks decisions that Prefect has runs of; `None` if it lacks none.

        Such a ledger is an older one that was restored, or another ledger decided meanwhile. Then also set the cursors
        back by the full overlap, because the updates of those decisions may have occurred long before them.
        """
        last_made = await self._ledger.call(self._reader.decisions.last_made, self._ledger.now())
        known_until = last_made or self._ledger.ledger.created
        since = max(known_until - CLOCKS, *await self._harmless_gaps())
        unknown = await self._unknown(since)
        if unknown is None:
            return None
        logger.warning(
            "this ledger does not know decision %s, whose run was created at %s: it is an older ledger that was "
            "restored, or another one decided meanwhile; it adopts the decisions that it lacks",
            unknown.id,
            f"{unknown.launched:%Y-%m-%d %H:%M:%S} UTC",
        )
        for name in ("artifacts", "events"):
            read = await self._ledger.cursor(name)
            if read is not None:
                await self._ledger.set_cursor(name, min(read, self._ledger.now()) - Sweeps().full_overlap)
        await self._ledger.set_cursor(CURSOR, since)
        return since

    async def _harmless_gaps(self) -> list[datetime]:
        """Return the times before which decisions may be unknown: the beginning, the last prune, the last adoption.

        `None` of them is later than now, even if a clock that was ahead wrote it.
        """
        cursors = [await self._ledger.cursor(name) for name in ("floor", PRUNED, ADOPTED)]
        gaps = [self._ledger.ledger.created if cursors[0] is None else cursors[0], *filter(None, cursors[1:])]
        return [min(each, self._ledger.now()) for each in gaps]

    async def _unknown(self, since: datetime) -> Decided | None:
        """Return the newest decision that has a run and is not in the ledger; `None` if the newest ones are."""
        found = [await self._newest_unknown(reading, since) for reading in past_decisions(self._api, since)]
        return max(filter(None, found), key=lambda each: each.launched, default=None)

    async def _newest_unknown(self, reading: AsyncIterator[Decided], since: datetime) -> Decided | None:
        checked = 0
        async for decided in reading:
            if decided.launched > since and not await self._ledger.call(self._reader.decisions.known, [decided.id]):
                return decided
            checked += 1
            if checked == ENOUGH:
                break
        return None
