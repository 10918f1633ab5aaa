"""Tell which deployments are refused: in the ledger for every process, and in Prefect (contract 8.1, 8.10, 8.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from assetflow.core.refused_deployments import RefusedDeployment
from assetflow.core.wire.deployments import Deployed, ShownAutomation
from assetflow.errors import AssetflowError, LedgerError, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import logger
from assetflow.evaluator.ports import AutomationBoard, ConsumerLedger, KnownConsumer


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


class RefusalBoard:
    """Says on the automation of a refused deployment why it is refused: Prefect shows it on the deployment's page.

    The deployment itself is its user's, and stays as it is. A deployment without an automation gets one.

    Parameters:
        shown: assetflow's automations in Prefect, by id; those that are made are added.
    """

    def __init__(self, automations: AutomationBoard, shown: dict[UUID, ShownAutomation]) -> None:
        self._automations = automations
        self._shown = shown

    async def show(
        self, refused: RefusedDeployment, known: KnownConsumer | None, automations: Sequence[ShownAutomation]
    ) -> None:
        """Let the automation of a deployment say why it is refused, beside the schedule that it still has.

        Parameters:
            known: the consumer that the deployment still is.
            automations: those of the deployment.

        Raises:
            PrefectUnreachable: the next call shows it.
        """
        options = None if known is None else known.consumer.options
        wanted = self._automations.refused(refused.deployment_id, refused.name, options, refused.words)
        try:
            if not automations:
                enabled = known is None or not known.consumer.paused
                made = await self._automations.create(refused.deployment_id, wanted, enabled=enabled)
                self._shown[made.id] = made
            for each in automations:
                if not self._automations.is_in_step(each, wanted):
                    await self._automations.update(each, wanted)
        except PrefectRefused as error:
            logger.warning("Prefect does not show that %s is refused: %s", refused.name, error)
