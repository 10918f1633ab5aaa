"""How the runs of decisions end: heard on the websocket, and asked for at intervals (contract 4.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import UUID

from assetflow.evaluator.health import Health
from assetflow.evaluator.ports import EvaluatorLedger, RunMaker
from assetflow.prefect_io.flow_runs import TERMINAL
from assetflow.prefect_io.rest import Json

ASK_EVERY = 5.0
ASKED_AT_ONCE = 50
LOOKED_AT = 1_000

_PREFIX = "prefect.flow-run."


class RunWatch:
    """Tells the ledger which runs have ended.

    Parameters:
        on_ended: called after the end of a decision's run, when there may be a decision to launch.
    """

    def __init__(
        self,
        ledger: EvaluatorLedger,
        runs: RunMaker,
        health: Health,
        on_ended: Callable[[], None],
        ask_every: float = ASK_EVERY,
    ) -> None:
        self._ledger = ledger
        self._runs = runs
        self._health = health
        self._on_ended = on_ended
        self._ask_every = ask_every
        self._asked_last: UUID | None = None

    async def hear(self, event: Json) -> None:
        """An event of a flow run; only the end of one counts.

        Raises:
            LedgerError
        """
        resource = event.get("resource", {})
        number = str(resource.get("prefect.resource.id", ""))
        if resource.get("prefect.state-type") in TERMINAL and number.startswith(_PREFIX):
            await self.end(UUID(number.removeprefix(_PREFIX)), str(resource.get("prefect.state-name", "")))

    async def run(self) -> None:
        """Ask Prefect for the runs that have not ended as far as the ledger knows, some at a time, for ever."""
        while True:
            for run, state in (await self._runs.ended(await self._next_ones())).items():
                await self.end(run, state)
            self._health.up("asking for runs")
            await asyncio.sleep(self._ask_every)

    async def _next_ones(self) -> list[UUID]:
        runs = [running.flow_run for running in await self._ledger.running(LOOKED_AT)]
        start = next((place + 1 for place, run in enumerate(runs) if run == self._asked_last), 0)
        chosen = (runs[start:] + runs[:start])[:ASKED_AT_ONCE]
        self._asked_last = chosen[-1] if chosen else None
        return chosen

    async def end(self, run: UUID, state: str) -> None:
        """A run has ended, whoever says so.

        Raises:
            LedgerError
        """
        if await self._ledger.ended(run, state):
            self._on_ended()
