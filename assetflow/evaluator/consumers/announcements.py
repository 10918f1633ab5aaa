"""Tell Prefect how the states of assets changed: one event for each change, until Prefect's log has it. Contract 8.13.

The ledger stores a change in the transaction that judges the state. Prefect answers before it stores an event, so only
its log says that an event is there. An event that is sent again has the same id, and Prefect stores it once; but
automations may run twice for it. So it is sent again only if the log does not have it after a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from assetflow.core.freshness.asset_freshness import StateChange
from assetflow.core.wire.deployments import CURSOR as REFUSED_DEPLOYMENTS
from assetflow.core.wire.deployments import Deployed, RefusedDeployment, ShownAutomation
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, LedgerError, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import Health, heard, logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.records import ConsumerRecord
from assetflow.prefect_io.automations import Automations
from assetflow.prefect_io.logs import EventLog
from assetflow.prefect_io.own_events import freshness_changed

TOLD_AT_ONCE = 50
# Prefect's log has an event at most five seconds after Prefect's answer, or some more on a busy machine.
POSTED_AGAIN = timedelta(seconds=30)
WHILE_TELLING = 1.0
LOOK_EVERY = 60.0


class FreshnessTeller:
    """Posts the events of changed states, and marks those that Prefect's log has.

    Parameters:
        now: the real time, also if the ledger's clock is ahead of it.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        events: EventLog,
        health: Health,
        now: Callable[[], datetime],
    ) -> None:
        self._ledger = ledger
        self._writer = ledger.writer.freshness
        self._events = events
        self._health = health
        self._now = now
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look now: there may be changes to tell of."""
        self._wake.set()

    async def run(self) -> None:
        """Tell of changes, until cancelled.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError: call it again, nothing is lost.
        """
        while True:
            self._wake.clear()
            left = await self.look()
            self._health.up("telling of freshness")
            await heard(self._wake, WHILE_TELLING if left else LOOK_EVERY)

    async def look(self) -> int:
        """Post the events that Prefect's log does not have, and return how many changes are not marked yet, at least.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        changes = await self._ledger.call(self._writer.to_tell, TOLD_AT_ONCE)
        if not changes:
            return 0
        posted = [each for each in changes if each.posted is not None]
        stored = await self._stored(posted)
        if stored:
            reach("between-freshness-event-and-mark")
            await self._ledger.call(self._writer.stored, [each.number for each in stored], self._ledger.now())
        waiting = self._now() - POSTED_AGAIN
        missing = [each for each in changes if each not in stored and (each.posted is None or each.posted < waiting)]
        if missing:
            await self._post(missing)
        # There may be more than were read.
        return max(len(changes) - len(stored), int(len(changes) == TOLD_AT_ONCE))

    async def _stored(self, posted: Sequence[StateChange]) -> Sequence[StateChange]:
        if not posted:
            return ()
        moments = [each.change.at for each in posted]
        known = await self._events.stored([each.id for each in posted], min(moments), max(moments))
        return [each for each in posted if each.id in known]

    async def _post(self, changes: Sequence[StateChange]) -> None:
        await self._ledger.call(self._writer.posted, [each.number for each in changes], self._now())
        reach("between-state-and-freshness-event")
        await self._events.publish([freshness_changed(each) for each in changes])
        reach("between-freshness-event-and-log")
        for each in changes:
            (logger.info if each.change.state == "pass" else logger.warning)("%s", each.describe())


class Refusals:
    """Writes the refused deployments to the ledger whenever they change. The first call replaces what is there."""

    def __init__(self, ledger: LedgerThread) -> None:
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
            rows = [each.to_row() for each in now]
            await self._ledger.call(self._ledger.writer.set_cursor, REFUSED_DEPLOYMENTS, rows)
            self._written = now


class RefusalBoard:
    """Says on the automation of a refused deployment why it is refused: Prefect shows it on the deployment's page.

    The deployment itself is its user's, and stays as it is. A deployment without an automation gets one.

    Parameters:
        shown: assetflow's automations in Prefect, by id; those that are made are added.
    """

    def __init__(self, automations: Automations, shown: dict[UUID, ShownAutomation]) -> None:
        self._automations = automations
        self._shown = shown

    async def show(
        self, refused: RefusedDeployment, known: ConsumerRecord | None, automations: Sequence[ShownAutomation]
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
