"""The stack's calls of Prefect: a busy server is asked again, and nothing is started twice."""

import json
from uuid import uuid4

import httpx
import pytest
import respx

from assetflow.errors import PrefectRefused, PrefectUnreachable, StackFailed
from assetflow.stack.calls import PrefectCalls

API = "http://127.0.0.1:9/api"
DEPLOYMENT = str(uuid4())


@respx.mock(base_url=API)
def test_a_run_is_asked_for_again_under_the_same_key(respx_mock: respx.MockRouter) -> None:
    run = str(uuid4())
    respx_mock.get("/deployments/name/flow/name").respond(json={"id": DEPLOYMENT})
    create = respx_mock.post(f"/deployments/{DEPLOYMENT}/create_flow_run")
    create.side_effect = [httpx.Response(503), httpx.ReadTimeout, httpx.Response(201, json={"id": run})]
    with PrefectCalls(API) as calls:
        assert str(calls.start("flow/name", day="2026-11-20")) == run
    asked = [json.loads(call.request.content) for call in create.calls]
    assert len({body["idempotency_key"] for body in asked}) == 1
    assert [body["parameters"] for body in asked] == [{"day": "2026-11-20"}] * 3
    assert asked[0]["state"]["message"] == "Started by hand"


@respx.mock(base_url=API)
def test_a_server_that_stays_busy_is_an_error(respx_mock: respx.MockRouter) -> None:
    respx_mock.get("/deployments/name/flow/name").respond(503)
    with PrefectCalls(API, patience=0) as calls, pytest.raises(PrefectUnreachable, match="answers 503"):
        calls.start("flow/name")


@respx.mock(base_url=API)
def test_what_is_refused_is_not_asked_again(respx_mock: respx.MockRouter) -> None:
    asked = respx_mock.get("/deployments/name/flow/name").respond(404, json={"detail": "Deployment not found"})
    with PrefectCalls(API) as calls, pytest.raises(PrefectRefused, match="404"):
        calls.start("flow/name")
    assert asked.call_count == 1


@respx.mock(base_url=API)
def test_a_run_that_fails_is_not_waited_for_any_longer(respx_mock: respx.MockRouter) -> None:
    state = {"message": "Flow run encountered an exception: JavaNotFound: none"}
    answer = {"name": "calm-fox", "state_type": "FAILED", "state_name": "Failed", "state": state}
    respx_mock.get(path__startswith="/flow_runs/").respond(json=answer)
    with PrefectCalls(API) as calls, pytest.raises(StackFailed, match=r"calm-fox ended as Failed: .*JavaNotFound"):
        calls.wait_for_run(uuid4(), 60)


@respx.mock(base_url=API)
def test_deployments_that_come_and_go_meanwhile_do_no_harm(respx_mock: respx.MockRouter) -> None:
    made, gone = ({"flow_id": id_, "name": "lake", "entrypoint": id_, "created": id_} for id_ in ("1", "2"))
    flows = [{"id": "1", "name": "load"}]
    listed = respx_mock.post("/deployments/filter").respond(json=[made, gone])
    respx_mock.post("/flows/filter").mock(side_effect=lambda _: httpx.Response(200, json=flows * listed.called))
    with PrefectCalls(API) as calls:
        assert calls.deployments() == {("1", "lake"): "load/lake"}
