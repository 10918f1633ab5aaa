"""Read the final states of the runs of all consumers and makers, whoever started them. Contract 4.8."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from assetflow.evaluator.health import Health, heard
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.prefect_io.open_runs import OpenRuns

READING_ENDS = "reading how runs ended"
# The time of the newest final state that is stored, by Prefect's clock.
CURSOR = "final states"
LOOK_EVERY = 60.0
# Many runs that end one after the other are read together.
REST = 3.0
# How much later than its time a final state may be visible; more after a time in which nobody looked.
OVERLAP = timedelta(seconds=20)
LONG_OVERLAP = timedelta(minutes=15)


class FinalStates:
    """Stores how runs have ended.

    Parameters:
        floor: the beginning of the ledger. Runs that ended before are left out.
        on_ended: called when new final states are stored.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        open_runs: OpenRuns,
        health: Health,
        floor: datetime,
        on_ended: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._open_runs = open_runs
        self._health = health
        self._floor = floor
        self._on_ended = on_ended
        self._wake = asyncio.Event()
        self._anew: set[UUID] = set()

    def wake(self, anew: UUID | None = None) -> None:
        """Look soon: a run has ended.

        Parameters:
            anew: a run that had ended before. For Prefect, the time of its end stays: it is asked for by its id.
        """
        if anew is not None:
            self._anew.add(anew)
        self._wake.set()

    async def run(self) -> None:
        """Read final states, until cancelled.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError: call it again, nothing is lost.
        """
        overlap = LONG_OVERLAP
        while True:
            self._wake.clear()
            await self.look(overlap)
            self._health.up(READING_ENDS)
            # What became visible late is found each minute.
            overlap = OVERLAP if await heard(self._wake, LOOK_EVERY) else 3 * OVERLAP
            await asyncio.sleep(REST)

    async def look(self, overlap: timedelta = LONG_OVERLAP) -> None:
        """Read the final states since the last look.

        Parameters:
            overlap: how much further back it reads; with the longest, it also reads which runs ended anew meanwhile.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        newest = await self._ledger.cursor(CURSOR)
        since = self._floor if newest is None else max(self._floor, newest - overlap)
        if newest is not None and overlap == LONG_OVERLAP:
            self._anew |= {change.run async for change in self._open_runs.ended_anew(since)}
        anew = set(self._anew)
        found = await self._open_runs.ended(since, anew)
        runs = [replace(each, ended=self._ledger.by_ledger(each.ended)) for each in found]
        if runs and await self._ledger.call(self._ledger.writer.ended_runs.add, runs, self._ledger.now()):
            self._on_ended()
        if found and (newest is None or newest < found[-1].ended):
            await self._ledger.set_cursor(CURSOR, found[-1].ended)
        self._anew -= anew
