"""Several runs with one request to a real Prefect server: the same runs as one by one, however often it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from assetflow.core.codec import RunContext
from assetflow.core.consumers import Decision
from assetflow.errors import PrefectRefused
from assetflow.prefect_io.flow_runs import FlowRuns
from assetflow.prefect_io.rest import prefect_api
from tests.environment.prefect_server import PrefectServer

pytestmark = pytest.mark.prefect

NOW = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def http(prefect_here: PrefectServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=prefect_here.api_url, timeout=30) as client:
        yield client


def flow(http: httpx.Client) -> str:
    return post(http, "/flows/", {"name": f"together-{uuid4().hex[:8]}"})["id"]


def deploy(http: httpx.Client, of: str, **more: Any) -> UUID:
    return UUID(post(http, "/deployments/", {"name": uuid4().hex[:8], "flow_id": of, **more})["id"])


def post(http: httpx.Client, path: str, body: object) -> Any:
    return http.post(path, json=body).raise_for_status().json()


def decide(deployment: UUID, *keys: str) -> list[tuple[Decision, RunContext]]:
    made = [Decision(uuid4(), 1, deployment, key, (), NOW) for key in keys]
    return [(each, RunContext(each.id, "together/daily", each.target_key, ())) for each in made]


def rows(http: httpx.Client, deployment: UUID) -> Sequence[dict[str, Any]]:
    return post(http, "/flow_runs/filter", {"deployments": {"id": {"any_": [str(deployment)]}}})


async def test_they_are_those_that_are_made_one_by_one(http: httpx.Client) -> None:
    deployment = deploy(http, flow(http))
    wanted = decide(deployment, "a", "b", "c")
    async with prefect_api() as api:
        runs = FlowRuns(api)
        second = await runs.create(*wanted[1], None)
        together = await runs.create_all(wanted, None)
        assert await runs.create_all(wanted[:2], None) == {each.id: together[each.id] for each, _ in wanted[:2]}
        assert [await runs.create(*each, None) for each in wanted] == list(together.values())
    assert together[wanted[1][0].id] == second
    found = {row["id"]: row for row in rows(http, deployment)}
    assert len(found) == 3
    for decision, _ in wanted:
        row = found[str(together[decision.id])]
        assert row["parameters"] == {"partition_key": decision.target_key}
        assert (row["state_type"], row["tags"]) == ("SCHEDULED", ["assetflow"])
        assert row["labels"]["assetflow.decision"] == row["idempotency_key"] == str(decision.id)


async def test_one_that_is_refused_among_them_is_left_out(http: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"partition_key": {"enum": ["a", "c"]}}}
    deployment = deploy(http, flow(http), parameter_openapi_schema=schema, enforce_parameter_schema=True)
    wanted = decide(deployment, "a", "b", "c")
    async with prefect_api() as api:
        found = await FlowRuns(api).create_all(wanted, None)
        assert list(found) == [wanted[0][0].id, wanted[2][0].id]
        with pytest.raises(PrefectRefused, match="409"):
            await FlowRuns(api).create(*wanted[1], None)


async def test_a_run_of_another_deployment_under_the_same_key_is_left_out(http: httpx.Client) -> None:
    of = flow(http)
    ours, other = deploy(http, of), deploy(http, of)
    wanted = decide(ours, "a", "b")
    post(http, f"/deployments/{other}/create_flow_run", {"idempotency_key": str(wanted[0][0].id)})
    async with prefect_api() as api:
        assert list(await FlowRuns(api).create_all(wanted, None)) == [wanted[1][0].id]


@pytest.mark.usefixtures("prefect_here")
async def test_of_a_deployment_that_is_gone_there_are_none() -> None:
    async with prefect_api() as api:
        with pytest.raises(PrefectRefused, match="404"):
            await FlowRuns(api).create_all(decide(uuid4(), "a", "b"), None)
