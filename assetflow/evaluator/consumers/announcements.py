"""Tell Prefect of changed states of assets and of failed runs: one event for each, until Prefect's log has it.

The ledger stores a change in the transaction that judges the state (8.13), and how a run ended (4.8). Prefect answers
before it stores an event, so only its log says that an event is there. An event that is sent again has the same id, and
Prefect stores it once; but automations may run twice for it. So it is sent again only if the log does not have it after
a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from assetflow.core.wire.deployments import CURSOR as REFUSED_DEPLOYMENTS
from assetflow.core.wire.deployments import Deployed, RefusedDeployment, ShownAutomation
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, LedgerError, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import Health, heard, logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.records import ConsumerRecord
from assetflow.prefect_io.automations import Automations
from assetflow.prefect_io.logs import EventLog
from assetflow.prefect_io.rest import Json

TOLD_AT_ONCE = 50
# Prefect's log has an event at most five seconds after Prefect's answer, or some more on a busy machine.
POSTED_AGAIN = timedelta(seconds=30)
WHILE_TELLING = 1.0
LOOK_EVERY = 60.0


class Told(Protocol):
    """Something that becomes one event in Prefect; `posted` is when it was sent last."""

    @property
    def number(self) -> int: ...
    @property
    def id(self) -> UUID: ...
    @property
    def at(self) -> datetime: ...
    @property
    def posted(self) -> datetime | None: ...
    @property
    def is_good(self) -> bool: ...
    def describe(self) -> str: ...


T = TypeVar("T", bound=Told)
T_co = TypeVar("T_co", bound=Told, covariant=True)


class Outbox(Protocol[T_co]):
    """What the ledger has to tell, and what Prefect's log has of it."""

    def to_tell(self, limit: int, /) -> Sequence[T_co]: ...
    def posted(self, numbers: Collection[int], now: datetime, /) -> None: ...
    def stored(self, numbers: Collection[int], now: datetime, /) -> None: ...


class Teller(Generic[T]):
    """Posts the events of an outbox, and marks those that Prefect's log has.

    Parameters:
        name: what it tells of, for messages.
        as_event: returns the event.
        now: the real time, also if the ledger's clock is ahead of it.
    """

    def __init__(
        self,
        name: str,
        ledger: LedgerThread,
        outbox: Outbox[T],
        as_event: Callable[[T], Json],
        events: EventLog,
        health: Health,
        now: Callable[[], datetime],
    ) -> None:
        self._name = name
        self._ledger = ledger
        self._outbox = outbox
        self._as_event = as_event
        self._events = events
        self._health = health
        self._now = now
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look now: there may be something to tell."""
        self._wake.set()

    async def run(self) -> None:
        """Tell, until cancelled.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError: call it again, nothing is lost.
        """
        while True:
            self._wake.clear()
            left = await self.look()
            self._health.up(self._name)
            await heard(self._wake, WHILE_TELLING if left else LOOK_EVERY)

    async def look(self) -> int:
        """Post the events that Prefect's log does not have, and return how many are not marked yet, at least.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        told = await self._ledger.call(self._outbox.to_tell, TOLD_AT_ONCE)
        if not told:
            return 0
        posted = [each for each in told if each.posted is not None]
        stored = await self._stored(posted)
        if stored:
            reach("between-freshness-event-and-mark")
            await self._ledger.call(self._outbox.stored, [each.number for each in stored], self._ledger.now())
        waiting = self._now() - POSTED_AGAIN
        missing = [each for each in told if each not in stored and (each.posted is None or each.posted < waiting)]
        if missing:
            await self._post(missing)
        # There may be more than were read.
        return max(len(told) - len(stored), int(len(told) == TOLD_AT_ONCE))

    async def _stored(self, posted: Sequence[T]) -> Sequence[T]:
        if not posted:
            return ()
        moments = [each.at for each in posted]
        known = await self._events.stored([each.id for each in posted], min(moments), max(moments))
        return [each for each in posted if each.id in known]

    async def _post(self, told: Sequence[T]) -> None:
        await self._ledger.call(self._outbox.posted, [each.number for each in told], self._now())
        reach("between-state-and-freshness-event")
        await self._events.publish([self._as_event(each) for each in told])
        reach("between-freshness-event-and-log")
        for each in told:
            (logger.info if each.is_good else logger.warning)("%s", each.describe())


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
