"""A ledger that lacks decisions adopts them from Prefect's runs; an ordinary start asks for the newest runs only."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import respx

from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.wire import RunContext, run_context_to_json
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.process.status import CURSOR, Rebuild
from assetflow.prefect_io.names import DECISION_LABEL
from assetflow.prefect_io.rest import PrefectApi, prefect_api
from tests.environment.prefect_settings import prefect_at
from tests.ledger.conftest import template  # noqa: F401 (a ledger without migrating one)
from tests.ledger.making import NOW, A, B, deploy, event, recording

URL = "http://prefect.test/api"


@dataclass
class Runs:
    """Prefect's runs with their times of creation."""

    made: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def of(
        self,
        decision: Decision,
        at: datetime,
        *,
        expected: datetime | None = None,
        began: datetime | None = None,
        state: str = "COMPLETED",
    ) -> None:
        context = RunContext(decision.id, "flow/one", decision.target_key, decision.events, made=decision.made)
        self.made.append(
            {
                "id": str(uuid4()),
                "deployment_id": str(decision.deployment_id),
                "created": at.isoformat(),
                "expected_start_time": (expected or at).isoformat(),
                "start_time": None if began is None else began.isoformat(),
                "state_type": state,
                "labels": {DECISION_LABEL: str(decision.id)},
                "context": run_context_to_json(context),
            }
        )

    def respond(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.asked.append(body)
        wanted = body["flow_runs"]
        by = "start_time" if body["sort"] == "START_TIME_DESC" else "expected_start_time"
        states = wanted.get("state", {"type": {"any_": ["SCHEDULED", "PENDING", "RUNNING", "COMPLETED"]}})["type"][
            "any_"
        ]
        found = [run for run in self.made if (run[by] or "") >= wanted[by]["after_"] and run["state_type"] in states]
        found.sort(key=lambda run: run[by], reverse=True)
        return httpx.Response(200, json=found[body["offset"] : body["offset"] + body["limit"]])


@dataclass
class Site:
    """A ledger with a consumer of `A & B`, and the Prefect that has its runs."""

    thread: LedgerThread
    consumer: Consumer
    api: PrefectApi
    rebuild: Rebuild
    runs: Runs
    minutes: int = 0

    def decided(self, count: int = 1) -> list[Decision]:
        """Let the ledger decide, a minute after the last time, and create the runs."""
        made: list[Decision] = []
        for _ in range(count):
            self.minutes += 1
            now = NOW + timedelta(minutes=self.minutes)
            made += self.thread.ledger.writer.events.record([recording(event(A), event(B))], now)[0][1]
            self.runs.of(made[-1], now)
        return made

    def decided_elsewhere(self, *events: Any) -> Decision:
        """Create the run of a decision that this ledger does not know."""
        self.minutes += 1
        now = NOW + timedelta(minutes=self.minutes)
        deployment = self.consumer.deployment_id
        decision = Decision(uuid4(), 1, deployment, None, events or (event(A), event(B)), now)
        self.runs.of(decision, now)
        return decision

    def decisions(self) -> Sequence[UUID]:
        return [each.id for each in self.thread.ledger.reader.decisions.find(limit=1_000)]


@pytest.fixture
async def site(tmp_path: Any, template: Any) -> AsyncIterator[Site]:  # noqa: F811
    place = tmp_path / "ledger.db"
    place.write_bytes(template.read_bytes())
    runs = Runs()
    with prefect_at(URL), respx.mock:
        respx.get(f"{URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
        respx.post(f"{URL}/flow_runs/filter").mock(side_effect=runs.respond)
        async with prefect_api() as api, LedgerThread(place, now=lambda: NOW + timedelta(days=1)) as thread:
            yield Site(thread, deploy(thread.ledger, A & B), api, Rebuild(thread, api), runs)


async def test_a_restored_ledger_adopts_the_decisions_that_it_lacks(site: Site) -> None:
    known = site.decided(3)
    a, b = event(A), event(B)
    lacking = site.decided_elsewhere(a, b)
    await site.thread.set_cursor("events", NOW)
    await site.rebuild.begin()
    read = await site.thread.cursor("events")
    assert read is not None
    assert read < NOW - timedelta(days=6)
    # In another order, and apart: the ledger alone would decide otherwise.
    site.thread.ledger.writer.events.record([recording(b), recording(event(B)), recording(a)], NOW)
    assert set(site.decisions()) == {each.id for each in (*known, lacking)}
    await site.rebuild.finish()
    assert await site.thread.cursor(CURSOR) is None


async def test_a_decision_that_was_made_as_of_an_instant_long_ago_is_found(site: Site) -> None:
    """An evaluator that was down decided it late. The restored ledger has later decisions."""
    site.decided(90)
    lacking = Decision(uuid4(), 1, site.consumer.deployment_id, None, (event(A), event(B)), NOW - timedelta(hours=9))
    site.runs.of(lacking, NOW + timedelta(minutes=100))
    await site.rebuild.begin()
    await site.rebuild.finish()
    record = site.thread.ledger.reader.decisions.get(lacking.id)
    assert record is not None
    assert record.made == lacking.made


async def test_a_killed_rebuild_is_continued(site: Site) -> None:
    site.decided(3)
    lacking = site.decided_elsewhere(event(A), event(B))
    await site.rebuild.begin()
    site.thread.ledger.writer.events.record([recording(*lacking.events)], NOW)
    again = Rebuild(site.thread, site.api)
    await again.begin()
    await again.finish()
    assert set(site.decisions()) >= {lacking.id}
    assert await site.thread.cursor(CURSOR) is None


async def test_decisions_that_stay_unknown_cause_one_rebuild(site: Site) -> None:
    """The updates of such a decision were recorded in a lost ledger only, and not in Prefect."""
    site.decided()
    site.decided_elsewhere()
    await site.rebuild.begin()
    await site.rebuild.finish()
    site.runs.asked.clear()
    await site.rebuild.begin()
    assert await site.thread.cursor(CURSOR) is None
    assert len(site.runs.asked) == 3
