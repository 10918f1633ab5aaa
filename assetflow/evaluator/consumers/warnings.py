"""Warn of declarations that are valid, and hardly what their author wanted (contract 8.4, 8.14, 8.15)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from assetflow.core.wire import FlowDeclaration
from assetflow.core.wire.deployments import Deployed
from assetflow.evaluator.consumers.checks import seldom_run
from assetflow.evaluator.consumers.cycles import find_cycles
from assetflow.evaluator.consumers.reconcile import SyncReport
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
        self._notes: Mapping[str, str] | None = None

    async def give(self, deployed: Iterable[Deployed]) -> None:
        """Warn of cycles, of flows that hardly ever run, of policies that cannot be held, and of what was left behind.

        Raises:
            LedgerError: the next call gives the warnings.
        """
        deployed = list(deployed)
        declarations = {each.name: each.declaration for each in deployed if each.declaration}
        cycles = find_cycles(declarations)
        notes = left_behind(deployed)
        warnings = [*seldom_run(declarations), *await self._infeasible(declarations), *notes.values()]
        if notes != self._notes:
            await self._ledger.set_notes(notes)
            self._notes = notes
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


def left_behind(deployed: Iterable[Deployed]) -> dict[str, str]:
    """Return a sentence for each deployment that runs beside its successor, by its name: it was hardly meant to stay.

    The two have the same entrypoint, schedule and parameters, and the older one was not in the deploy that made the
    other one.
    """
    groups: dict[tuple[str, str, str], list[Deployed]] = {}
    for each in deployed:
        if each.is_scheduled and each.entrypoint and each.created is not None:
            groups.setdefault((each.entrypoint, each.text, each.parameters), []).append(each)
    found: dict[str, str] = {}
    for group in groups.values():
        made, newest = max((each.created or each.updated, each.name) for each in group)
        found |= {each.name: _words(each.name, newest) for each in group if each.name != newest and each.updated < made}
    return found


def _words(old: str, new: str) -> str:
    return (
        f"{old} runs beside {new}, a later deployment of the same flow with the same schedule and parameters. If it "
        f"was renamed, `prefect deployment delete '{old}'` ends the old one and its queue"
    )
