"""Brings one deployment in step: its consumer in the ledger, and the automation that shows it.

What should be is compared with what is, step by step, so that whatever failed is made again by the next call.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from prefect.events.schemas.automations import AutomationCore

from assetflow.evaluator.consumer_ledger import ConsumerLedger, KnownConsumer
from assetflow.evaluator.report import Done, Report, What
from assetflow.prefect_io.automations import Automations, Delivery, Shown, automation_for, in_step
from assetflow.prefect_io.deployments import Deployed

logger = logging.getLogger("assetflow.evaluator")


class Follower:
    """Follows deployments, one at a time.

    Parameters:
        shown: our automations that Prefect has, by id; those that are made or deleted here are put in or taken out.
        report: told of each step.
    """

    def __init__(
        self,
        ledger: ConsumerLedger,
        automations: Automations,
        shown: dict[UUID, Shown],
        report: Report,
        delivery: Delivery,
    ) -> None:
        self._ledger = ledger
        self._automations = automations
        self._shown = shown
        self._report = report
        self._delivery: Delivery = delivery

    async def take_away(self, deployment_id: UUID, known: KnownConsumer | None, shown: Sequence[Shown]) -> None:
        """A deployment that is gone, or not scheduled any more, has neither consumer nor automation.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        self._report.scheduled.pop(deployment_id, None)
        self._report.problems.pop(deployment_id, None)
        if known is not None:
            await self._ledger.remove(known.consumer.id)
            self._tell("removed", known.consumer.name)
        for each in shown:
            await self._hide(each)

    async def bring_in_step(self, deployed: Deployed, known: KnownConsumer | None, shown: Sequence[Shown]) -> None:
        """A scheduled deployment has a consumer with its schedule, and one automation that shows it.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError, AssetflowError: its schedule cannot be used.
        """
        wanted = automation_for(deployed.id, deployed.name, deployed.options, delivery=self._delivery)
        kept = await self._keep(known, shown)
        # The automation's switch says what is paused; one that was deleted comes back as the ledger remembers it.
        paused = not kept.enabled if kept is not None else known is not None and known.consumer.paused
        if known is None:
            consumer = await self._ledger.deploy(deployed, paused=paused)
            self._tell("deployed", deployed.name)
        else:
            consumer = known.consumer
            await self._change(known, deployed, paused)
        self._report.scheduled[deployed.id] = deployed
        automation_id = await self._show(deployed, wanted, kept, enabled=not paused)
        if known is None or known.automation_id != automation_id:
            await self._ledger.set_automation(consumer.id, automation_id)
        for each in shown:
            if each.id != automation_id:
                await self._hide(each)

    async def _keep(self, known: KnownConsumer | None, shown: Sequence[Shown]) -> Shown | None:
        """The one automation to keep: the ledger's; of several, one that is switched off."""
        automation_id = known.automation_id if known is not None else None
        if not shown and automation_id is not None:
            return await self._automations.find(automation_id)
        return min(shown, key=lambda each: (each.id != automation_id, each.enabled, each.id), default=None)

    async def _change(self, known: KnownConsumer, deployed: Deployed, paused: bool) -> None:
        consumer = known.consumer
        if known.text != deployed.text:
            await self._ledger.change(consumer.id, deployed)
            self._tell("changed", deployed.name)
        if consumer.paused != paused:
            await self._ledger.switch(consumer.id, paused=paused)
            self._tell("paused" if paused else "resumed", deployed.name)
        if consumer.held != deployed.held:
            await self._ledger.switch(consumer.id, held=deployed.held)
            self._tell("held" if deployed.held else "released", deployed.name)

    async def _show(self, deployed: Deployed, wanted: AutomationCore, kept: Shown | None, *, enabled: bool) -> UUID:
        if kept is None:
            automation_id = await self._automations.create(wanted, enabled=enabled)
            self._tell("shown", deployed.name)
            self._shown[automation_id] = Shown(automation_id, None, deployed.id, enabled, wanted)
            return automation_id
        if not in_step(kept, wanted):
            await self._automations.update(kept, wanted)
            self._tell("reshown", deployed.name)
        self._shown.setdefault(kept.id, kept)
        return kept.id

    async def _hide(self, shown: Shown) -> None:
        await self._automations.delete(shown.id)
        self._shown.pop(shown.id, None)
        self._tell("hidden", shown.name)

    def _tell(self, what: What, name: str) -> None:
        self._report.done.append(Done(what, name))
        logger.info("%s %s", what, name)
