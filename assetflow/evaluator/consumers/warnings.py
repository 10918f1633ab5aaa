"""Warn of declarations that are valid, and hardly what their author wanted (contract 8.4, 8.14, 8.15)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from assetflow.core.codec import FlowDeclaration
from assetflow.core.deployed import Deployed
from assetflow.evaluator.consumers.cycles import find_cycles
from assetflow.evaluator.consumers.reconcile import SyncReport
from assetflow.evaluator.consumers.seldom_run import seldom_run
from assetflow.evaluator.ports import ConsumerLedger

logger = logging.getLogger("assetflow.evaluator")


class Warnings:
    """Logs each warning once, as long as its reason stays.

    Parameters:
        report: receives the warnings that hold now.
    """

    def __init__(self, ledger: ConsumerLedger, report: SyncReport) -> None:
        self._ledger = ledger
        self._report = report

    async def give(self, deployed: Iterable[Deployed]) -> None:
        """Warn of cycles, of flows that hardly ever run, and of freshness policies that cannot be held.

        Raises:
            LedgerError: the next call gives the warnings.
        """
        declarations = {each.name: each.declaration for each in deployed if each.declaration}
        cycles = find_cycles(declarations)
        warnings = [*seldom_run(declarations), *await self._infeasible(declarations)]
        for each in (*cycles, *warnings):
            if each not in self._report.cycles and each not in self._report.warnings:
                logger.warning("%s", each)
        self._report.cycles, self._report.warnings = cycles, warnings

    async def _infeasible(self, declarations: Mapping[str, FlowDeclaration]) -> list[str]:
        """Return a sentence for each policy that cannot be held, which is known once a policy was judged."""
        if not any(each.options.data.policies for each in declarations.values()):
            return []
        found = await self._ledger.freshness()
        return [f"{each.uri}: {words}" for each in found if (words := each.describe_feasibility())]
