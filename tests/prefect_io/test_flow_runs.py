"""Creating runs: the exact request, and what each answer of Prefect's means."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
import respx
from prefect.settings import PREFECT_API_URL, temporary_settings

from assetflow.core.assets import Asset
from assetflow.core.codec import RunContext
from assetflow.core.consumers import Decision
from assetflow.core.events import AssetEvent, Origin
from assetflow.errors import PrefectRefused, PrefectUnreachable
from assetflow.prefect_io.flow_runs import Automation, FlowRuns, run_name, run_request
from assetflow.prefect_io.rest import prefect_api

URL = "http://prefect.test/api"
DEPLOYMENT = UUID("00000000-0000-4000-8000-000000000001")
RUN = UUID("00000000-0000-4000-8000-000000000002")
DECISION = UUID("00000000-0000-4000-8000-000000000003")
EVENT = UUID("00000000-0000-4000-8000-000000000004")
AUTOMATION = Automation(UUID("00000000-0000-4000-8000-000000000005"), "report runs when “örders” were updated")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
CREATE = f"/deployments/{DEPLOYMENT}/create_flow_run"


def decision(key: str | None = None) -> Decision:
    extra = {"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"}
    asset = Asset("s3://shop/orders.parquet")
    event = AssetEvent(EVENT, asset, NOON, Origin("prefect"), extra, key, sequence=7, recorded=NOON)
    return Decision(DECISION, 1, DEPLOYMENT, key, (event,), NOON)


def context(of: Decision) -> RunContext:
    return RunContext(of.id, "report/daily", of.target_key, of.events)


@pytest.fixture
async def runs() -> AsyncIterator[FlowRuns]:
    with temporary_settings(updates={PREFECT_API_URL: URL}), respx.mock:
        # Asked for by Prefect's client before the first change.
        respx.get(f"{URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
        async with prefect_api() as api:
            yield FlowRuns(api)


def answer(**changed: Any) -> dict[str, Any]:
    return {"id": str(RUN), "deployment_id": str(DEPLOYMENT)} | changed


def test_the_request_of_a_plain_decision() -> None:
    made = decision()
    assert run_request(made, context(made)) == {
        "name": "orders.parquet-000000",
        "idempotency_key": str(DECISION),
        "context": {
            "assetflow": {
                "version": 1,
                "consumer": "report/daily",
                "decision": str(DECISION),
                "events": [
                    {
                        "id": str(EVENT),
                        "uri": "s3://shop/orders.parquet",
                        "extra": {"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"},
                        "occurred": "2026-11-20T12:00:00Z",
                        "origin": {"kind": "prefect"},
                        "sequence": 7,
                        "recorded": "2026-11-20T12:00:00Z",
                    }
                ],
            }
        },
        "labels": {"assetflow.decision": str(DECISION), "assetflow.consumer": "report/daily"},
        "tags": ["assetflow"],
        "state": {"type": "SCHEDULED", "name": "Scheduled", "message": "Started by 1 update: orders.parquet"},
    }


def test_the_request_of_a_partition() -> None:
    made = decision("2026-11-20")
    request = run_request(made, context(made))
    assert request["name"] == "2026-11-20-000000"
    assert request["labels"]["assetflow.partition-key"] == "2026-11-20"
    assert "__OTEL_TRACEPARENT" not in request["labels"]
    assert request["parameters"] == {"partition_key": "2026-11-20"}
    assert request["state"]["message"] == "Started by 1 update for 2026-11-20: orders.parquet"
    assert request["context"]["assetflow"]["partition_key"] == "2026-11-20"


def test_the_request_of_a_backfill_says_so() -> None:
    made = replace(decision("2026-11-20"), events=(), kind="backfill")
    request = run_request(made, context(made))
    assert request["state"]["message"] == "Started by a backfill for 2026-11-20"
    assert request["parameters"] == {"partition_key": "2026-11-20"}
    assert request["context"]["assetflow"]["events"] == []


def test_a_name_shows_three_assets() -> None:
    events = tuple(
        AssetEvent(UUID(int=n), Asset(f"s3://b/{n}", name=f"asset {n}"), NOON, Origin("task")) for n in range(5)
    )
    assert run_name(Decision(DECISION, 1, DEPLOYMENT, None, events, NOON)) == "asset 0-asset 1-asset 2-more-000000"


async def test_parameters_stay_the_deployments_and_the_automation_is_named(runs: FlowRuns) -> None:
    route = respx.post(f"{URL}{CREATE}").respond(201, json=answer())
    made = decision()
    assert await runs.create(made, context(made), AUTOMATION) == RUN
    request = route.calls.last.request
    assert "parameters" not in json.loads(request.content)
    assert request.headers["Prefect-Automation-ID"] == str(AUTOMATION.id)
    assert b64decode(request.headers["Prefect-Automation-Name"]).decode() == AUTOMATION.name


async def test_an_older_run_of_this_decision_is_the_run(runs: FlowRuns) -> None:
    respx.post(f"{URL}{CREATE}").respond(200, json=answer())
    made = decision()
    assert await runs.create(made, context(made), None) == RUN


async def test_an_answer_with_another_run_is_asked_for_again(runs: FlowRuns) -> None:
    respx.post(f"{URL}{CREATE}").respond(200, json=answer(idempotency_key="of-another-decision"))
    made = decision()
    with pytest.raises(PrefectUnreachable, match="was not asked for"):
        await runs.create(made, context(made), None)


async def test_a_run_of_another_deployment_is_none(runs: FlowRuns) -> None:
    other = "00000000-0000-4000-8000-00000000000f"
    respx.post(f"{URL}{CREATE}").respond(200, json=answer(deployment_id=other))
    made = decision()
    with pytest.raises(PrefectRefused, match=f"another deployment \\({other}\\)"):
        await runs.create(made, context(made), None)


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        (404, "Deployment not found"),
        (409, "Error creating flow run: 'day' is a required property"),
        (422, "Invalid schema"),
        (400, "Error hydrating flow run parameters"),
    ],
)
async def test_what_prefect_refuses_for_good(runs: FlowRuns, status: int, detail: str) -> None:
    route = respx.post(f"{URL}{CREATE}").respond(status, json={"detail": detail})
    made = decision()
    with pytest.raises(PrefectRefused, match=f"{status}.*{detail}"):
        await runs.create(made, context(made), None)
    assert route.call_count == 1


@pytest.mark.parametrize(
    "given",
    [
        httpx.Response(500, json={"exception_message": "Internal Server Error"}),
        httpx.Response(503, json={"exception_message": "Service Unavailable"}),
        httpx.Response(502, text="<html>"),
        httpx.Response(429, headers={"Retry-After": "600"}),
        httpx.Response(401, json={"exception_message": "Unauthorized"}),
        httpx.Response(403, json={"detail": "Forbidden"}),
        httpx.Response(404, text="<html>a proxy's own page</html>"),
        httpx.Response(200, text="<html>"),
        httpx.ReadTimeout("slow"),
        httpx.ConnectError("refused"),
        httpx.RemoteProtocolError("the answer was lost"),
    ],
    ids=str,
)
async def test_what_may_be_another_answer_later_is_said_at_once(runs: FlowRuns, given: Any) -> None:
    route = respx.post(f"{URL}{CREATE}").mock(side_effect=[given])
    made = decision()
    with pytest.raises(PrefectUnreachable):
        await runs.create(made, context(made), None)
    assert route.call_count == 1


async def test_which_runs_have_ended(runs: FlowRuns) -> None:
    going, done, gone, unseen = (UUID(int=n) for n in range(1, 5))
    rows = [
        {"id": str(going), "state_type": "RUNNING", "state_name": "Running"},
        {"id": str(done), "state_type": "COMPLETED", "state_name": "Skipped"},
    ]
    respx.post(f"{URL}/flow_runs/filter").respond(json=rows)
    respx.get(f"{URL}/flow_runs/{gone}").respond(404, json={"detail": "Flow run not found"})
    respx.get(f"{URL}/flow_runs/{unseen}").respond(json={"id": str(unseen)})
    assert await runs.ended([going, done, gone, unseen]) == {done: "Skipped", gone: "Deleted"}
