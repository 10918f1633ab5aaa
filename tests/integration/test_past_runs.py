"""Past decisions are found in a real Prefect, whatever became of their runs, and however long after their opening."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire import FlowDeclaration, RunContext
from assetflow.prefect_io.flow_runs import run_request
from assetflow.prefect_io.open_runs import past_decisions
from assetflow.prefect_io.rest import prefect_api
from tests.core.world import event
from tests.environment.prefect_server import PrefectServer
from tests.environment.prefect_settings import prefect_at
from tests.integration.installation import Installation

pytestmark = [pytest.mark.long, pytest.mark.prefect]


@pytest.fixture
def here(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(prefect_server, tmp_path)
    yield installation
    installation.close()


async def found(since: datetime) -> list[set[UUID]]:
    async with prefect_api() as api:
        return [{each.id async for each in reading} for reading in past_decisions(api, since)]


def test_the_run_of_an_opening_hours_ago_is_found(here: Installation, prefect_server: PrefectServer) -> None:
    asset = Asset(here.uri("raw"))
    deployment = UUID(here.deploy_declared("report", FlowDeclaration(ConsumerOptions(Schedule(asset)))))
    now = datetime.now(UTC)
    opening = now - timedelta(hours=9)
    runs: dict[UUID, str] = {}
    for _ in range(2):
        decision = Decision(uuid4(), 1, deployment, None, (event(asset),), now, opening=opening)
        context = RunContext(decision.id, "report/x", None, decision.events, made=now, opening=opening)
        request = run_request(decision, context)
        runs[decision.id] = here.post(f"/deployments/{deployment}/create_flow_run", request)["id"]
    waits, began = runs
    for state in ("PENDING", "RUNNING", "COMPLETED"):
        here.post(f"/flow_runs/{runs[began]}/set_state", {"state": {"type": state}, "force": True})

    with prefect_at(prefect_server.api_url):
        of_each = asyncio.run(found(now - timedelta(hours=1)))

    assert [each & {waits, began} for each in of_each] == [{waits}, {began}, set()]
