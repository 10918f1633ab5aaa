"""The stack's calls of Prefect: a busy server is asked again, and nothing is started twice."""

from __future__ import annotations

import json
from uuid import uuid4

import httpx
import pytest
import respx

from assetflow.errors import PrefectRefused, PrefectUnreachable
from assetflow.stack.calls import PrefectCalls

API = "http://127.0.0.1:9/api"
DEPLOYMENT = str(uuid4())


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assetflow.stack.calls.POLL_SECONDS", 0)


@respx.mock(base_url=API)
def test_a_run_is_asked_for_again_under_the_same_key(respx_mock: respx.MockRouter) -> None:
    run = str(uuid4())
    respx_mock.get("/deployments/name/flow/name").respond(json={"id": DEPLOYMENT})
    create = respx_mock.post(f"/deployments/{DEPLOYMENT}/create_flow_run")
    create.side_effect = [httpx.Response(503), httpx.ReadTimeout, httpx.Response(201, json={"id": run})]
    with PrefectCalls(API) as calls:
        assert str(calls.start("flow/name")) == run
    keys = {json.loads(call.request.content)["idempotency_key"] for call in create.calls}
    assert create.call_count == 3
    assert len(keys) == 1


@respx.mock(base_url=API)
def test_a_server_that_stays_busy_is_an_error(respx_mock: respx.MockRouter) -> None:
    respx_mock.get("/deployments/name/flow/name").respond(503)
    with PrefectCalls(API, patience=0) as calls, pytest.raises(PrefectUnreachable, match="answers 503 to GET"):
        calls.start("flow/name")


@respx.mock(base_url=API)
def test_what_is_refused_is_not_asked_again(respx_mock: respx.MockRouter) -> None:
    asked = respx_mock.get("/deployments/name/flow/name").respond(404)
    with PrefectCalls(API) as calls, pytest.raises(PrefectRefused, match="404"):
        calls.start("flow/name")
    assert asked.call_count == 1


@respx.mock(base_url=API)
def test_a_pool_that_is_there_is_kept(respx_mock: respx.MockRouter) -> None:
    respx_mock.post("/work_pools/").respond(409)
    respx_mock.get("/work_pools/mine").respond(json={"name": "mine"})
    with PrefectCalls(API) as calls:
        calls.make_pool("mine")
