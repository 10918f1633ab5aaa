"""Tell Prefect of changed states, failed runs and checks, and missed deadlines: one event each, until its log has it.

The ledger stores a change in the transaction that judges the state (8.13), how a run ended (4.8), what failed a check
(12.6), and which deadline was missed (9.8). Prefect answers before it stores an event, so only its log says that an
event is there. An event that is sent again has the same id, and Prefect stores it once; but automations may run twice
for it. So it is sent again only if the log does not have it after a while.
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
from assetflow.evaluator.health import Health, Loop, logger
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


class Teller(Loop, Generic[T]):
    """Posts the events of an outbox, and marks those that Prefect's log has.

    Parameters:
        name: what it tells of, for messages.
        as_events: returns the event of something, and those that go along with it; none if there is nothing to post.
        now: the real time, also if the ledger's clock is ahead of it.
        at_once: how much is told together.
        rest: the seconds before each look, in which more comes together.
    """

    def __init__(
        self,
        name: str,
        ledger: LedgerThread,
        outbox: Outbox[T],
        as_events: Callable[[T], Sequence[Json]],
        events: EventLog,
        health: Health,
        now: Callable[[], datetime],
        at_once: int = TOLD_AT_ONCE,
        rest: float = 0,
    ) -> None:
        super().__init__(name, health)
        self._ledger = ledger
        self._outbox = outbox
        self._as_events = as_events
        self._at_once = at_once
        self._rest = rest
        self._events = events
        self._now = now

    async def step(self) -> float:
        """Tell, after what comes in meanwhile; return the seconds until Prefect's log may have it."""
        await asyncio.sleep(self._rest)
        # The look that follows sees what came in meanwhile.
        self._wake.clear()
        return WHILE_TELLING if await self.look() else LOOK_EVERY

    async def look(self) -> int:
        """Post the events that Prefect's log does not have, and return how many are not marked yet, at least.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        told = await self._ledger.call(self._outbox.to_tell, self._at_once)
        if not told:
            return 0
        events = {each.number: self._as_events(each) for each in told}
        stored = await self._stored([each for each in told if each.posted is not None], events)
        stored += [each for each in told if not events[each.number]]
        if stored:
            reach("between-freshness-event-and-mark")
            await self._ledger.call(self._outbox.stored, [each.number for each in stored], self._ledger.now())
        waiting = self._now() - POSTED_AGAIN
        missing = [each for each in told if each not in stored and (each.posted is None or each.posted < waiting)]
        if missing:
            await self._post(missing, events)
        # There may be more than were read.
        return max(len(told) - len(stored), int(len(told) == self._at_once))

    async def _stored(self, posted: Sequence[T], events: Mapping[int, Sequence[Json]]) -> list[T]:
        """Return those of which Prefect's log has the event, which is the first of those to post."""
        ids = {each.number: UUID(events[each.number][0]["id"]) for each in posted if events[each.number]}
        if not ids:
            return []
        moments = [each.at for each in posted]
        known = await self._events.stored([*ids.values()], min(moments), max(moments))
        return [each for each in posted if ids.get(each.number) in known]

    async def _post(self, told: Sequence[T], events: Mapping[int, Sequence[Json]]) -> None:
        await self._ledger.call(self._outbox.posted, [each.number for each in told], self._now())
        # Said once, also if Prefect does not take the event at the first attempt.
        for each in told:
            if each.posted is None and (words := each.describe()):
                (logger.info if each.is_good else logger.warning)("%s", words)
        reach("between-state-and-freshness-event")
        await self._events.publish([event for each in told for event in events[each.number]])
        reach("between-freshness-event-and-log")


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
