"""Creating runs: the exact request, and what each answer of Prefect's means."""

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

from assetflow.core.freshness.records import Asked
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Automation, Decision
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.core.values.keeping import Cause
from assetflow.core.wire import RunContext
from assetflow.errors import PrefectRefused, PrefectUnreachable, Unsendable
from assetflow.prefect_io.flow_runs import FlowRuns, run_request
from assetflow.prefect_io.rest import prefect_api
from tests.environment.prefect_settings import prefect_at

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
    with prefect_at(URL), respx.mock:
        # Asked for by Prefect's client before the first change.
        respx.get(f"{URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
        async with prefect_api() as api:
            yield FlowRuns(api)


def answer(**changed: Any) -> dict[str, Any]:
    return {"id": str(RUN), "deployment_id": str(DEPLOYMENT)} | changed


def test_rule_8_17_the_request_of_an_eager_flow_says_why_and_after_which_decision() -> None:
    because = (Cause("data", "s3://shop/raw"), Cause("code"))
    made = replace(decision(), events=(), kind="eager", because=because)
    first = RunContext(made.id, "core/daily", asked=Asked("eager", because, {}, {}))
    labels = run_request(made, first)["labels"]
    assert labels["assetflow.because"] == "s3://shop/raw was updated, its code has another version"
    assert "assetflow.predecessor" not in labels
    assert first.asked is not None
    asked = replace(first.asked, predecessor=EVENT, because=(Cause("data", "x" * 1_500),))
    later = run_request(made, replace(first, asked=asked))["labels"]
    assert later["assetflow.predecessor"] == str(EVENT)
    assert later["assetflow.because"] == "x" * 1_000


async def test_parameters_stay_the_deployments_and_the_automation_is_named(runs: FlowRuns) -> None:
    route = respx.post(f"{URL}{CREATE}").respond(201, json=answer())
    made = decision()
    assert await runs.create(made, context(made), AUTOMATION) == RUN
    request = route.calls.last.request
    assert "parameters" not in json.loads(request.content)
    assert request.headers["Prefect-Automation-ID"] == str(AUTOMATION.id)
    assert b64decode(request.headers["Prefect-Automation-Name"]).decode() == AUTOMATION.name


async def test_a_key_that_belongs_to_another_deployment_is_refused_for_good(runs: FlowRuns) -> None:
    made = decision()
    taken = answer(idempotency_key=str(made.id), deployment_id=str(UUID(int=99)))
    respx.post(f"{URL}{CREATE}").respond(200, json=taken)
    with pytest.raises(PrefectRefused, match="of another deployment"):
        await runs.create(made, context(made), None)


async def test_an_answer_with_another_run_is_asked_for_again(runs: FlowRuns) -> None:
    respx.post(f"{URL}{CREATE}").respond(200, json=answer(idempotency_key="of-another-decision"))
    made = decision()
    with pytest.raises(PrefectUnreachable, match="was not asked for"):
        await runs.create(made, context(made), None)


@pytest.mark.parametrize(
    "said",
    [
        {},
        [],
        None,
        "created",
        {"id": "x"},
        {"id": str(RUN)},
        {"id": str(RUN), "deployment_id": None},
        answer(deployment_id="00000000-0000-4000-8000-00000000000f"),
    ],
    ids=str,
)
async def test_an_answer_without_the_run_says_nothing_about_it(runs: FlowRuns, said: Any) -> None:
    respx.post(f"{URL}{CREATE}").respond(200, json=said)
    made = decision()
    with pytest.raises(PrefectUnreachable):
        await runs.create(made, context(made), None)


def prefect_says(*, deployment: httpx.Response, health: httpx.Response, version: httpx.Response) -> None:
    respx.get(f"{URL}/deployments/{DEPLOYMENT}").mock(return_value=deployment)
    respx.get(f"{URL}/health").mock(return_value=health)
    respx.get(f"{URL}/admin/version").mock(return_value=version)


NO_PATH = httpx.Response(404, json={"detail": "Not Found"})
NO_DEPLOYMENT = httpx.Response(404, json={"detail": "Deployment not found"})
THERE = httpx.Response(200, json={"id": str(DEPLOYMENT)})
WELL = httpx.Response(200, json=True)
VERSION = httpx.Response(200, json="3.9.1")


@pytest.mark.parametrize(
    ("status", "detail", "deployment"),
    [
        (404, "Deployment not found", NO_DEPLOYMENT),
        (409, "Error creating flow run: 'day' is a required property", THERE),
        (422, "Invalid schema", THERE),
        (400, "Error hydrating flow run parameters", THERE),
    ],
)
@pytest.mark.parametrize(("health", "version"), [(WELL, NO_PATH), (NO_PATH, VERSION)])
async def test_what_prefect_refuses_for_good(
    runs: FlowRuns,
    status: int,
    detail: str,
    deployment: httpx.Response,
    health: httpx.Response,
    version: httpx.Response,
) -> None:
    route = respx.post(f"{URL}{CREATE}").respond(status, json={"detail": detail})
    prefect_says(deployment=deployment, health=health, version=version)
    made = decision()
    with pytest.raises(PrefectRefused, match=f"{status}.*{detail}"):
        await runs.create(made, context(made), None)
    assert route.call_count == 1


@pytest.mark.rule("4.6")
@pytest.mark.parametrize(
    ("status", "detail", "deployment", "health"),
    [
        (404, "Deployment not found", THERE, WELL),
        (404, "Deployment not found", NO_PATH, WELL),
        (404, "Deployment not found", NO_DEPLOYMENT, NO_PATH),
        (404, "Deployment not found", NO_DEPLOYMENT, httpx.Response(200, text="<html>")),
        (404, "Deployment not found", NO_DEPLOYMENT, httpx.Response(200, json={"status": "ok"})),
        (404, "no such page", httpx.Response(404, text="<html>"), WELL),
        (404, "Deployment not found", httpx.Response(503, json={}), WELL),
        (404, "Deployment not found", httpx.Response(200, json={}), WELL),
        (409, "Conflict", NO_DEPLOYMENT, WELL),
        (422, "Unprocessable", NO_PATH, WELL),
        (400, "Bad Request", httpx.Response(200, json=[]), WELL),
        # Something on the way that answers every request alike.
        (400, "Bad Request", httpx.Response(400, json={"detail": "Bad Request"}), NO_PATH),
        (404, "no such backend", httpx.Response(404, json={"detail": "no such backend"}), NO_PATH),
        (409, "Conflict", httpx.Response(409, json={"detail": "Conflict"}), NO_PATH),
        (413, "Too large", httpx.Response(413, json={"detail": "Too large"}), NO_PATH),
        (422, "Unprocessable", httpx.Response(422, json={"detail": "Unprocessable"}), NO_PATH),
        (422, "Unprocessable", httpx.Response(422, json={"detail": "Unprocessable"}), WELL),
    ],
)
async def test_a_refusal_that_prefect_does_not_confirm_is_none(
    runs: FlowRuns, status: int, detail: str, deployment: httpx.Response, health: httpx.Response
) -> None:
    respx.post(f"{URL}{CREATE}").respond(status, json={"detail": detail})
    prefect_says(deployment=deployment, health=health, version=NO_PATH)
    made = decision()
    with pytest.raises(PrefectUnreachable):
        await runs.create(made, context(made), None)


@pytest.mark.parametrize("extra", [{"f": "\udce9"}, {"r": float("nan")}, {"x": object()}])
async def test_what_cannot_be_written_is_not_sent(runs: FlowRuns, extra: dict[str, object]) -> None:
    route = respx.post(f"{URL}{CREATE}").respond(201, json=answer())
    with pytest.raises(Unsendable, match=r"create_flow_run cannot be sent"):
        await runs.make(DEPLOYMENT, {"context": extra}, None)
    assert not route.called
