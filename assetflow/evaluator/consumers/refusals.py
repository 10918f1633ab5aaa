"""Keep in the ledger which deployments are refused, so that every process can show it (contract 8.1, 8.10, 8.11)."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from assetflow.core.deployed import Deployed
from assetflow.core.refused_deployments import RefusedDeployment
from assetflow.errors import AssetflowError, LedgerError, PrefectUnreachable
from assetflow.evaluator.ports import ConsumerLedger


class Refusals:
    """Writes the refused deployments to the ledger whenever they change. The first call replaces what is there."""

    def __init__(self, ledger: ConsumerLedger) -> None:
        self._ledger = ledger
        self._written: list[RefusedDeployment] | None = None

    async def keep(self, problems: Mapping[UUID, AssetflowError], deployed: Mapping[UUID, Deployed]) -> None:
        """Write which deployments are refused now. What may work at the next try is not refused.

        Raises:
            LedgerError: the next call writes them.
        """
        now = [
            RefusedDeployment.of(number, of.name, error, of.text)
            for number, error in problems.items()
            if not isinstance(error, PrefectUnreachable | LedgerError) and (of := deployed.get(number)) is not None
        ]
        now.sort(key=lambda each: each.name)
        if now != self._written:
            await self._ledger.set_refused(now)
            self._written = now
