"""Simple fakes of Prefect for the evaluator's loops."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from assetflow.core.explain import DecisionExplanation
from assetflow.core.rules.ended_runs import RunChange, RunEnd, RunGoingOn
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Automation, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.wire import RunContext
from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io.flow_runs import FlowRuns
from assetflow.prefect_io.logs import ArtifactLog, EventLog
from assetflow.prefect_io.open_runs import OpenRuns
from assetflow.prefect_io.run_notes import RunNotes
from tests.evaluator.ledgers import START


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **by: float) -> None:
        self.now += timedelta(**by)


async def no_starts(_: Sequence[UUID]) -> Mapping[UUID, datetime]:
    """Answer as a Prefect that knows none of the task runs."""
    return {}


class FakeRuns(FlowRuns):
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


class FakeOpenRuns(OpenRuns):
    """Prefect's flow runs that go on; a test puts them in."""

    def __init__(self, *runs: RunGoingOn) -> None:
        self.runs = {each.run: each for each in runs}
        self.asked: list[UUID] = []
        self.newest: dict[UUID, datetime] = {}
        self.looked_since: list[datetime | None] = []
        self.anew: list[RunChange] = []

    async def find(self, run: UUID) -> RunGoingOn | None:
        return self.runs.get(run)

    async def began(self, run: UUID) -> datetime | None:
        self.asked.append(run)
        return self.runs[run].began if run in self.runs else None

    async def states(self, ended_since: datetime | None) -> AsyncIterator[Mapping[UUID, datetime]]:
        self.looked_since.append(ended_since)
        yield self.newest

    async def ended_anew(self, since: datetime) -> AsyncIterator[RunChange]:  # noqa: ARG002
        for change in self.anew:
            yield change

    async def all(self) -> AsyncIterator[RunGoingOn]:
        for run in list(self.runs.values()):
            yield run


class FakeLogs(ArtifactLog, EventLog):
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


class FakeBoard(RunNotes):
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
