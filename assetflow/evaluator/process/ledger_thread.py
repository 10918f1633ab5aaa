"""The ledger as all parts of the evaluator call it: in a thread of its own, under the evaluator's lease.

The ledger's calls block, so they run one after the other in the thread. Decisions that follow from a call are in the
ledger afterwards, where the launcher finds them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid4

from assetflow.core.explain import DecisionExplanation
from assetflow.core.freshness.asset_freshness import AssetFreshness, StateChange
from assetflow.core.rules.adoption import Decided
from assetflow.core.rules.runs import RunEnd, RunGoingOn
from assetflow.core.values.consumers import Automation, Consumer
from assetflow.core.values.events import Recording
from assetflow.core.wire.deployments import CURSOR as REFUSED_DEPLOYMENTS
from assetflow.core.wire.deployments import NOTES, Deployed, RefusedDeployment
from assetflow.errors import UnknownEvent
from assetflow.evaluator.ports import (
    Json,
    KnownConsumer,
    Launch,
    Refused,
    RunWithoutNote,
    TimedConsumer,
    TimePassed,
    Written,
)
from assetflow.evaluator.process.leadership import Leadership
from assetflow.ledger import Holder, Ledger
from assetflow.ledger.lease import Role
from assetflow.ledger.read.explanations import decision_explanation
from assetflow.ledger.read.judging import HELD_UP
from assetflow.ledger.records import ConsumerRecord, DecisionRecord, MissedDeadlineRecord, TimerRecord
from assetflow.ledger.sql.commits import CommitListener
from assetflow.prefect_io.automation_text import automation_name
from assetflow.prefect_io.stored_values import TAKEN_OVER

SOURCE = "prefect"
# The cursor that holds the timestamp of the newest automation that the consumers follow.
AUTOMATIONS = "automations"
# Prefect's logs are read every few seconds. What was read longer ago may lack updates.
READ_LATELY = timedelta(seconds=15)


class LedgerThread:
    """The ledger, opened by the evaluator that holds its lease: an asynchronous context manager.

    It is the `EvaluatorLedger`, the `ConsumerLedger` and the `TimerLedger` of the evaluator's parts.

    Parameters:
        place: the ledger's file or URL; `None` for the one in the settings.
        stand_by: True to wait while another evaluator is running on the ledger, if the ledger allows several.
        now: returns the time that is written.
        role: which lease of the ledger it holds.

    Attributes:
        ledger: the ledger. Use it only in functions that `call` runs.
    """

    def __init__(
        self,
        place: str | Path | None = None,
        *,
        stand_by: bool = False,
        now: Callable[[], datetime] | None = None,
        role: Role = Role.EVALUATOR,
        ahead: Callable[[], timedelta] = timedelta,
    ) -> None:
        self.ledger: Ledger
        self.now = now or (lambda: datetime.now(UTC) + ahead())
        self._ahead = ahead
        self._place = place
        self._stand_by = stand_by
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="assetflow-ledger")
        self._holder = Holder.this_process(uuid4(), role)
        self._leadership: Leadership
        self._decider: list[str | None] = []
        self._logs_read: datetime | None = None

    async def __aenter__(self) -> Self:
        """Open the ledger and become its evaluator.

        Raises:
            LedgerError: the ledger cannot be opened.
            EvaluatorRunning: another evaluator is running on it, and this one is not to stand by, or cannot.
        """
        try:
            self.ledger = await self._in_thread(partial(Ledger.open, self._place, evaluator=self._holder.id))
            self._leadership = Leadership(self.ledger, self._holder, stand_by=self._stand_by)
            try:
                await self._leadership.gain()
            except BaseException:
                await self._leadership.give_back()
                self.ledger.close()
                raise
        except BaseException:
            self._thread.shutdown()
            raise
        self._reader, self._writer = self.ledger.reader, self.ledger.writer
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._leadership.give_back()
        self._thread.shutdown()
        self.ledger.close()

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function that uses the ledger in the ledger's thread, and return its result.

        Raises:
            LeaseLost: this process stood still, and another evaluator has taken over.
        """
        await self._leadership.confirm()
        return await self._in_thread(partial(function, *args, **kwargs))

    async def _in_thread(self, function: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    @asynccontextmanager
    async def commits(self) -> AsyncGenerator[AsyncIterator[None]]:
        # Not in the ledger's thread: the listener has a connection of its own, and waits.
        listener = await asyncio.to_thread(self.ledger.listen)
        try:
            yield _commits(listener)
        finally:
            await asyncio.to_thread(listener.close)

    # Recordings

    async def record(self, recordings: Sequence[Recording]) -> Written:
        moved = [
            each if each.durable is None else replace(each, durable=each.durable + self._ahead()) for each in recordings
        ]
        done = await self.call(self._writer.events.record, moved, self.now())
        return Written(
            events=sum(len(recorded.events) for recorded, _ in done),
            decisions=sum(len(decisions) for _, decisions in done),
            new_assets=[uri for recorded, _ in done for uri in recorded.new_assets],
            warnings=[warning for recorded, _ in done for warning in recorded.warnings],
        )

    async def refuse(self, refused: Refused) -> None:
        given = (refused.event, refused.reason, refused.rule, SOURCE, refused.id)
        await self.call(self._writer.events.refuse, *given, self.now())

    # Time

    async def let_time_pass(self, until: datetime) -> TimePassed:
        passed = await self.call(self._writer.clock.run, until, self.now())
        return TimePassed(len(passed.decisions), passed.next, passed.told)

    async def missed_deadlines(self, limit: int) -> Sequence[MissedDeadlineRecord]:
        return await self.call(self._writer.clock.to_announce, limit)

    async def deadlines_announced(self, numbers: Sequence[int]) -> None:
        await self.call(self._writer.clock.announced, numbers, self.now())

    async def freshness_to_tell(self, limit: int) -> Sequence[StateChange]:
        return await self.call(self._writer.freshness.to_tell, limit)

    async def freshness_posted(self, numbers: Sequence[int]) -> None:
        await self.call(self._writer.freshness.posted, numbers, datetime.now(UTC))

    async def freshness_stored(self, numbers: Sequence[int]) -> None:
        await self.call(self._writer.freshness.stored, numbers, self.now())

    async def has_events(self) -> bool:
        return bool((await self.call(self._reader.status)).last_event)

    # Decisions and their runs

    async def waiting(self, limit: int, besides: Collection[int] = ()) -> Sequence[Launch]:
        return await self.call(self._waiting, limit, besides)

    async def launched(self, decision: UUID, flow_run: UUID) -> None:
        await self.call(self._writer.decisions.launched, decision, flow_run, self.now())

    async def attempt_failed(self, decision: UUID, reason: str) -> None:
        await self.call(self._writer.decisions.attempt_failed, decision, reason)

    async def undeliverable(self, decision: UUID, reason: str) -> None:
        now = self.now()
        await self.call(self._writer.decisions.undeliverable, decision, reason, now, late=self._is_late(now))

    async def running(self, limit: int, after: UUID | None = None) -> Sequence[UUID]:
        decided = await self.call(self._reader.decisions.open_runs, limit, after)
        return sorted([*decided, *await self.call(self._reader.freshness.other_runs, limit, after)])[:limit]

    async def is_compared(self, flow_run: UUID) -> bool:
        return await self.call(self._reader.decisions.is_compared, flow_run)

    async def ended(self, flow_run: UUID, end: RunEnd) -> bool:
        now = self.now()
        moved = end._replace(at=self._moved(end.at), began=self._moved(end.began))
        times = {"at": moved.at, "began": moved.began}
        given = {"flow_run_id": flow_run, "late": self._is_late(now), "outcome": moved.outcome, **times}
        if await self.call(self._writer.decisions.ended, moved.state, now, state_at=end.at, **given) is not None:
            return True
        return await self.call(self._writer.runs.ended, flow_run, moved, now, end.at) is not None

    async def retried(self, states: Mapping[UUID, datetime], at: datetime | None = None) -> None:
        now, left = self.now(), self._moved(at)
        for run in await self.call(self._reader.decisions.ended, states):
            given = {"late": self._is_late(now), "at": left}
            if not await self.call(self._writer.decisions.retried, run, states[run], now, **given):
                await self.call(self._writer.runs.retried, run, states[run], now, left)

    async def compares(self, deployment: UUID | None = None) -> bool:
        return await self.call(self._reader.freshness.compares, deployment)

    async def knows_run(self, flow_run: UUID) -> bool:
        return await self.call(self._reader.freshness.knows_run, flow_run)

    async def goes_on(self, run: RunGoingOn) -> None:
        if run.decision is None and not await self.knows_run(run.run):
            moved = run._replace(asked=run.asked + self._ahead())
            await self.call(self._writer.runs.goes_on, moved, self.now())
        if run.began is not None:
            await self.began(run.run, run.began)

    async def began(self, flow_run: UUID, at: datetime) -> None:
        if await self.lacks_start(flow_run):
            await self.call(self._writer.runs.began, flow_run, at + self._ahead(), self.now())

    async def lacks_start(self, flow_run: UUID) -> bool:
        return await self.call(self._reader.freshness.lacks_start, flow_run)

    def _moved(self, moment: datetime | None) -> datetime | None:
        return None if moment is None else moment + self._ahead()

    async def without_note(self, limit: int) -> Sequence[RunWithoutNote]:
        records = await self.call(self._reader.decisions.without_note, limit=limit)
        return [RunWithoutNote(each.id, each.consumer_name, each.flow_run_id) for each in records]

    async def explain(self, decision: UUID) -> DecisionExplanation:
        # Not in the ledger's thread: reading the events of a large decision takes long, and nothing waits for it.
        return await asyncio.to_thread(self._explain, decision)

    async def noted(self, decisions: Sequence[UUID]) -> None:
        if decisions:
            await self.call(self._writer.decisions.noted, decisions, self.now())

    async def newest_decision(self) -> datetime | None:
        return await self.call(self._reader.decisions.last_made, self.now())

    async def knows_decision(self, decision: UUID) -> bool:
        return bool(await self.call(self._reader.decisions.known, [decision]))

    async def begin_adoption(self, decided: Sequence[Decided]) -> int:
        """Store the decisions to adopt, and return how many of them the ledger lacks."""
        return await self.call(self._writer.events.begin_adoption, decided)

    async def end_adoption(self) -> None:
        await self.call(self._writer.events.end_adoption, self.now())

    # The evaluator itself

    async def renew_lease(self) -> None:
        await self._leadership.keep()

    async def note_decider(self, other: str | None) -> None:
        if self._decider != [other]:
            await self.call(self._writer.set_cursor, TAKEN_OVER, other)
            self._decider = [other]

    async def set_prefect_url(self, url: str) -> None:
        await self.call(self._writer.set_prefect_api_url, url)

    async def write_held_up(self, troubles: Sequence[Json]) -> None:
        await self.call(self._writer.set_cursor, HELD_UP, troubles)

    async def cursor(self, name: str) -> datetime | None:
        kept = await self.call(self._reader.cursor, name)
        return None if kept is None else datetime.fromisoformat(str(kept))

    async def set_cursor(self, name: str, moment: datetime | None) -> None:
        await self.call(self._writer.set_cursor, name, None if moment is None else moment.isoformat())

    # Consumers

    async def consumers(self) -> Sequence[KnownConsumer]:
        records = await self.call(self._reader.consumers.all)
        return [KnownConsumer(each.consumer, each.declaration, each.automation_id) for each in records]

    async def deploy(self, deployed: Deployed, *, paused: bool) -> Consumer:
        given = (deployed.name, deployed.id, deployed.flow_id, deployed.text, paused, deployed.held)
        now = self.now()
        told = {"late": self._is_late(now), "created": deployed.created}
        consumer, _ = await self.call(self._writer.consumers.deploy, *given, now, **told)
        return consumer

    async def change(self, consumer: int, deployed: Deployed) -> None:
        now = self.now()
        await self.call(self._writer.consumers.change, consumer, deployed.text, now, late=self._is_late(now))

    async def switch(self, consumer: int, *, paused: bool | None = None, held: bool | None = None) -> None:
        now = self.now()
        switch = partial(self._writer.consumers.switch, consumer, paused=paused, held=held)
        await self.call(switch, now=now, late=self._is_late(now))

    async def remove(self, consumer: int) -> None:
        await self.call(self._writer.consumers.remove, consumer, self.now())

    def logs_read(self, until: datetime) -> None:
        self._logs_read = until + self._ahead()

    def _is_late(self, now: datetime) -> bool:
        """Return True if updates of before now may still be in Prefect's logs: at a start, or after an outage."""
        return self._logs_read is None or now - self._logs_read > READ_LATELY

    async def set_automation(self, consumer: int, automation_id: UUID | None) -> None:
        await self.call(self._writer.consumers.set_automation, consumer, automation_id)

    async def set_edges(self, deployed: Deployed) -> None:
        if deployed.options.data.tokens:
            # In the data graph, neither its switch nor its own pause means anything.
            await self.deploy(replace(deployed, held=False), paused=False)
        else:
            now = self.now()
            told = (deployed.id, deployed.name, deployed.text, now)
            await self.call(self._writer.lineage.declare, *told, late=self._is_late(now))

    async def drop_edges(self, deployment_id: UUID) -> None:
        await self.call(self._writer.consumers.forget, deployment_id, self.now())

    async def without_schedule(self) -> Mapping[UUID, tuple[str, str]]:
        return await self.call(self._reader.consumers.unlisted)

    async def freshness(self) -> Sequence[AssetFreshness]:
        return await self.call(self._reader.policies.all)

    async def automations_seen(self) -> datetime | None:
        return await self.cursor(AUTOMATIONS)

    async def set_automations_seen(self, stamp: datetime) -> None:
        await self.set_cursor(AUTOMATIONS, stamp)

    async def set_refused(self, refused: Sequence[RefusedDeployment]) -> None:
        await self.call(self._writer.set_cursor, REFUSED_DEPLOYMENTS, [each.to_row() for each in refused])

    async def set_notes(self, notes: Mapping[str, str]) -> None:
        await self.call(self._writer.set_cursor, NOTES, notes)

    # Timers

    async def timed_consumers(self) -> Sequence[TimedConsumer]:
        records: list[ConsumerRecord] = await self.call(self._reader.consumers.with_times)
        return [TimedConsumer(each.consumer, _automation(each.automation_id, each)) for each in records]

    async def timers(self) -> Sequence[TimerRecord]:
        return await self.call(self._reader.consumers.timers)

    async def keep_timers(self, timers: Sequence[TimerRecord]) -> None:
        await self.call(self._writer.consumers.keep_timers, timers)

    async def drop_timers(self, consumers: Sequence[int]) -> None:
        await self.call(self._writer.consumers.drop_timers, consumers)

    # What runs in a thread

    def _explain(self, decision: UUID) -> DecisionExplanation:
        record = self._reader.decisions.get(decision)
        if record is None:
            raise UnknownEvent(f"there is no decision {decision}")
        return decision_explanation(self._reader, record)

    def _waiting(self, limit: int, besides: Collection[int]) -> list[Launch]:
        waiting = self._reader.decisions.waiting(limit=limit, besides=besides)
        asked = self._reader.decisions.asked([each for each, _ in waiting])
        return [
            Launch(each.with_events(events), each.consumer_name, self._automation_of(each), asked.get(each.id))
            for each, events in waiting
        ]

    def _automation_of(self, decision: DecisionRecord) -> Automation | None:
        return _automation(decision.automation_id, self._reader.consumers.named(decision.consumer_name))


async def _commits(listener: CommitListener) -> AsyncIterator[None]:
    while await asyncio.to_thread(listener.wait):
        yield


def _automation(number: UUID | None, consumer: ConsumerRecord | None) -> Automation | None:
    if number is None or consumer is None:
        return None
    return Automation(number, automation_name(consumer.consumer.name, consumer.consumer.options))
