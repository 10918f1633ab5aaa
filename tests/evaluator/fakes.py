"""Simple fakes of the ledger and of Prefect for the evaluator's loops."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from assetflow.core.explain import DecisionExplanation, DecisionFacts, KnownNames, RunFacts, explain_decision
from assetflow.core.rules.fold import record_and_pass
from assetflow.core.rules.registry import deploy
from assetflow.core.rules.runs import RunEnd, RunGoingOn
from assetflow.core.rules.state import State
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Automation, Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import RunContext
from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.ports import Launch, Refused, RunWithoutNote, Written

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **by: float) -> None:
        self.now += timedelta(**by)


class FakeLedger:
    """A ledger in memory. Each method named in `fails` raises its errors first, one for each call."""

    def __init__(self) -> None:
        self.state = State()
        self.refused: list[Refused] = []
        self.batches: list[list[Recording]] = []
        self.runs: dict[UUID, UUID] = {}
        self.dead: dict[UUID, str] = {}
        self.attempts: list[tuple[UUID, str]] = []
        self.states: dict[UUID, str] = {}
        self.retries: list[tuple[UUID, datetime, datetime | None]] = []
        # The runs whose updates have to be recorded before their ends.
        self.compared: set[UUID] = set()
        self.compares_runs_of: set[UUID] = set()
        self.going_on: dict[UUID, RunGoingOn] = {}
        self.starts: dict[UUID, datetime] = {}
        self.notes: list[UUID] = []
        self.cursors: dict[str, datetime] = {}
        self.held_up: list[Sequence[Mapping[str, Any]]] = []
        self.decider: str | None = None
        self.fails: dict[str, list[Exception]] = {}

    def consumer(self, name: str, schedule: object, **options: Any) -> Consumer:
        consumer = Consumer(
            len(self.state.consumers.live()) + 1, name, uuid4(), ConsumerOptions(to_schedule(schedule), **options)
        )
        deploy(self.state, consumer)
        return consumer

    def _consumer(self, number: int) -> Consumer:
        found = self.state.consumers.find(number)
        assert found is not None
        return found

    @property
    def uris(self) -> list[str]:
        return [event.uri for event in self.state.changes.events]

    async def record(self, recordings: Sequence[Recording]) -> Written:
        self._maybe_fail("record")
        self.batches.append(list(recordings))
        results = [record_and_pass(self.state, recording, START) for recording in recordings]
        return Written(sum(len(r.events) for r, _ in results), sum(len(d) for _, d in results))

    async def refuse(self, refused: Refused) -> None:
        self._maybe_fail("refuse")
        self.refused.append(refused)

    async def waiting(self, limit: int, besides: Collection[int] = ()) -> Sequence[Launch]:
        self._maybe_fail("waiting")
        return [
            Launch(decision, self._consumer(decision.consumer).name, Automation(uuid4(), "runs when …"))
            for decision in self.state.changes.decisions
            if decision.id not in self.runs and decision.id not in self.dead and decision.consumer not in besides
        ][:limit]

    async def launched(self, decision: UUID, flow_run: UUID) -> None:
        self._maybe_fail("launched")
        self.runs[decision] = flow_run

    async def without_note(self, limit: int) -> Sequence[RunWithoutNote]:
        self._maybe_fail("without_note")
        runs = [(d, r) for d, r in self.runs.items() if d not in self.notes]
        return [RunWithoutNote(decision, "report/daily", run) for decision, run in runs][:limit]

    async def explain(self, decision: UUID) -> DecisionExplanation:
        self._maybe_fail("explain")
        (found,) = [each for each in self.state.changes.decisions if each.id == decision]
        consumer = self._consumer(found.consumer)
        facts = DecisionFacts(found, consumer.name, RunFacts(self.runs[decision], launched=START))
        return explain_decision(facts, consumer.schedule, KnownNames())

    async def noted(self, decisions: Sequence[UUID]) -> None:
        self._maybe_fail("noted")
        self.notes += decisions

    async def attempt_failed(self, decision: UUID, reason: str) -> None:
        self.attempts.append((decision, reason))

    async def undeliverable(self, decision: UUID, reason: str) -> None:
        self.dead[decision] = reason

    async def running(self, limit: int, after: UUID | None = None) -> Sequence[UUID]:
        going_on = sorted(run for run in self.runs.values() if run not in self.states)
        return [run for run in going_on if after is None or run > after][:limit]

    async def is_compared(self, flow_run: UUID) -> bool:
        return flow_run in self.compared

    async def compares(self, deployment: UUID | None = None) -> bool:
        return bool(self.compares_runs_of) if deployment is None else deployment in self.compares_runs_of

    async def knows_run(self, flow_run: UUID) -> bool:
        return flow_run in self.runs.values() or flow_run in self.going_on

    async def goes_on(self, run: RunGoingOn) -> None:
        self.going_on[run.run] = run
        if run.began is not None:
            await self.began(run.run, run.began)

    async def began(self, flow_run: UUID, at: datetime) -> None:
        self.starts.setdefault(flow_run, at)

    async def lacks_start(self, flow_run: UUID) -> bool:
        return flow_run in self.compared and flow_run not in self.starts

    async def ended(self, flow_run: UUID, end: RunEnd) -> bool:
        if flow_run not in self.runs.values() or flow_run in self.states:
            return False
        self.states[flow_run] = end.state
        if end.began is not None:
            await self.began(flow_run, end.began)
        return True

    async def retried(self, states: Mapping[UUID, datetime], at: datetime | None = None) -> None:
        self.retries += [(run, state_at, at) for run, state_at in states.items() if run in self.states]

    async def renew_lease(self) -> None:
        self._maybe_fail("renew_lease")

    async def note_decider(self, other: str | None) -> None:
        self.decider = other

    async def cursor(self, name: str) -> datetime | None:
        return self.cursors.get(name)

    def logs_read(self, until: datetime) -> None:
        self.read_until = until

    async def set_cursor(self, name: str, moment: datetime) -> None:
        self.cursors[name] = moment

    async def write_held_up(self, troubles: Sequence[Mapping[str, Any]]) -> None:
        self._maybe_fail("write_held_up")
        self.held_up.append(troubles)

    def _maybe_fail(self, name: str) -> None:
        if self.fails.get(name):
            raise self.fails[name].pop(0)


class FakeRuns:
    """Prefect's flow runs by idempotency key; a test sets what fails, hangs or has ended."""

    def __init__(self) -> None:
        self.created: dict[UUID, UUID] = {}
        self.contexts: dict[UUID, RunContext] = {}
        self.order: list[UUID] = []
        self.fails: dict[UUID, list[Exception]] = {}
        self.over: dict[UUID, RunEnd] = {}
        self.hanging: set[UUID] = set()
        self.most_at_once = 0
        self._at_once = 0

    async def create(self, decision: Decision, context: RunContext, automation: Automation | None) -> UUID:  # noqa: ARG002
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        while decision.id in self.hanging:  # noqa: ASYNC110 (a test takes it out)
            await asyncio.sleep(0.005)
        await asyncio.sleep(0)
        self._at_once -= 1
        if self.fails.get(decision.id):
            raise self.fails[decision.id].pop(0)
        if decision.id not in self.created:
            self.created[decision.id] = uuid4()
            self.order.append(decision.id)
        self.contexts[decision.id] = context
        return self.created[decision.id]

    async def ended(self, runs: Sequence[UUID]) -> dict[UUID, RunEnd]:
        return {run: self.over[run] for run in runs if run in self.over}


class FakeOpenRuns:
    """Prefect's flow runs that go on; a test puts them in."""

    def __init__(self, *runs: RunGoingOn) -> None:
        self.runs = {each.run: each for each in runs}
        self.asked: list[UUID] = []
        self.newest: dict[UUID, datetime] = {}
        self.looked_since: list[datetime | None] = []

    async def find(self, run: UUID) -> RunGoingOn | None:
        return self.runs.get(run)

    async def began(self, run: UUID) -> datetime | None:
        self.asked.append(run)
        return self.runs[run].began if run in self.runs else None

    async def states(self, ended_since: datetime | None) -> AsyncIterator[Mapping[UUID, datetime]]:
        self.looked_since.append(ended_since)
        yield self.newest

    async def all(self) -> AsyncIterator[RunGoingOn]:
        for run in list(self.runs.values()):
            yield run


class FakeLogs:
    """Prefect's artifacts and stored events."""

    def __init__(self) -> None:
        self.artifacts: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.published: list[Mapping[str, Any]] = []
        self.kept: list[tuple[Decision, str]] = []
        self.asked: list[tuple[datetime, datetime]] = []
        self.counts: list[tuple[datetime, datetime]] = []
        self.breaks_after = 1_000_000
        self.fails: list[Exception] = []

    async def updates_since(self, moment: datetime) -> AsyncIterator[Mapping[str, Any]]:
        if self.fails:
            raise self.fails.pop(0)
        for artifact in sorted(self.artifacts, key=lambda each: each["created"]):
            if datetime.fromisoformat(artifact["created"]) >= moment:
                yield artifact

    async def keep_events(self, decision: Decision, consumer: str) -> str:
        self.kept.append((decision, consumer))
        return str(uuid4())

    async def between(self, since: datetime, until: datetime, names: Sequence[str]) -> AsyncIterator[Mapping[str, Any]]:
        self.asked.append((since, until))
        for event in self._stored(since, until, names):
            self.breaks_after -= 1
            if self.breaks_after == -1:
                raise PrefectUnreachable("gone in the middle")
            yield event

    def _stored(self, since: datetime, until: datetime, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        for event in sorted(self.events, key=lambda each: each["occurred"]):
            if since <= datetime.fromisoformat(event["occurred"]) <= until and event["event"] in names:
                yield event

    async def number(self, since: datetime, until: datetime, names: Sequence[str]) -> int:
        return len(list(self._stored(since, until, names)))

    async def counted(
        self, since: datetime, until: datetime, names: Sequence[str], minutes: int
    ) -> Mapping[datetime, int]:
        self.counts.append((since, until))
        counts: Counter[datetime] = Counter()
        for event in self._stored(since, until - timedelta(microseconds=1), names):
            occurred = datetime.fromisoformat(event["occurred"])
            counts[occurred - (occurred - since) % timedelta(minutes=minutes)] += 1
        return counts

    async def stored(self, ids: Sequence[UUID], since: datetime, until: datetime) -> set[UUID]:  # noqa: ARG002
        return set()

    async def publish(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.published += events


class FakeBoard:
    """The notes on the pages of Prefect's runs."""

    def __init__(self) -> None:
        self.notes: list[DecisionExplanation] = []
        self.fails: list[Exception] = []

    async def present(self, runs: Mapping[UUID, str]) -> set[UUID]:
        noted = {note.facts.run.flow_run_id for note in self.notes}
        return {run for run in runs if run in noted}

    async def write(self, explanation: DecisionExplanation) -> None:
        if self.fails:
            raise self.fails.pop(0)
        self.notes.append(explanation)


def update(uri: str, occurred: datetime = START, **more: Any) -> AssetEvent:
    return AssetEvent(uuid4(), Asset(uri), occurred, Origin("task"), **more)


def recording(*uris: str, occurred: datetime = START) -> Recording:
    return Recording(uuid4(), tuple(update(uri, occurred) for uri in uris))
