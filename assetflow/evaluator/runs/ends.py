"""Record the ends of runs: Prefect sends them on the websocket, and is asked for them at intervals. Contract 4.7."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from assetflow.core.run_ends import RunEnd
from assetflow.evaluator.health import Health
from assetflow.evaluator.ports import EvaluatorLedger, RunMaker

ASK_EVERY = 5.0
ASKED_AT_ONCE = 50
READ_AT_ONCE = 1_000


class RunWatch:
    """Tells the ledger which runs have ended.

    Parameters:
        on_ended: called after the end of a decision's run, which may lead to a new decision.
        read_logs: records what Prefect's logs have by now. What a run has updated counts before its end (8.16).
        ask_every: the seconds between two requests to Prefect.
    """

    def __init__(
        self,
        ledger: EvaluatorLedger,
        runs: RunMaker,
        health: Health,
        on_ended: Callable[[], None],
        read_logs: Callable[[], Awaitable[None]],
        ask_every: float = ASK_EVERY,
    ) -> None:
        self._ledger = ledger
        self._runs = runs
        self._health = health
        self._on_ended = on_ended
        self._read_logs = read_logs
        self._ask_every = ask_every
        self._asked_last: UUID | None = None

    async def run(self) -> None:
        """Ask Prefect, until cancelled, for the runs that have not ended as far as the ledger knows, some at a time.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError: call it again.
        """
        while True:
            for run, end in (await self._runs.ended(await self._next_runs())).items():
                await self.end(run, end)
            self._health.up("asking for runs")
            await asyncio.sleep(self._ask_every)

    async def end(self, run: UUID, end: RunEnd) -> None:
        """Record that a run has ended, after what it has updated.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        if await self._ledger.is_compared(run):
            await self._read_logs()
        if await self._ledger.ended(run, end):
            self._on_ended()

    async def _next_runs(self) -> list[UUID]:
        """Return the runs to ask for next, in turn."""
        runs = list(await self._ledger.running(READ_AT_ONCE))
        start = next((place + 1 for place, run in enumerate(runs) if run == self._asked_last), 0)
        chosen = (runs[start:] + runs[:start])[:ASKED_AT_ONCE]
        self._asked_last = chosen[-1] if chosen else None
        return chosen
