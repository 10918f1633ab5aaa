"""Prefect Cloud: every request goes to the workspace and shows the key; a server with a password is shown that."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
import respx
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_KEY,
    PREFECT_API_URL,
    PREFECT_CLIENT_CUSTOM_HEADERS,
    temporary_settings,
)
from websockets.asyncio.server import ServerConnection, serve

from assetflow.authoring.recording import deliver
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.wire import RunContext
from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io.connection import event_stream_token
from assetflow.prefect_io.flow_runs import FlowRuns
from assetflow.prefect_io.logs import ArtifactLog, EventLog
from assetflow.prefect_io.rest import prefect_api
from assetflow.prefect_io.websocket import subscribe

WORKSPACE = f"https://api.prefect.cloud/api/accounts/{uuid4()}/workspaces/{uuid4()}"
NOW = datetime(2026, 11, 20, tzinfo=UTC)
EVENT = AssetEvent(uuid4(), Asset("s3://lake/orders"), NOW, Origin("api"))


@pytest.fixture
def in_cloud() -> Iterator[None]:
    with temporary_settings(updates={PREFECT_API_URL: WORKSPACE, PREFECT_API_KEY: "pnu_key"}):
        yield


def shows_key(request: httpx.Request) -> bool:
    return request.headers["authorization"] == "Bearer pnu_key" and str(request.url).startswith(WORKSPACE)


@pytest.mark.usefixtures("in_cloud")
@respx.mock
def test_a_task_records_in_its_workspace() -> None:
    artifact = respx.post(f"{WORKSPACE}/artifacts/").respond(201, json={"id": str(uuid4())})
    events = respx.post(f"{WORKSPACE}/events").respond(204)
    deliver(Recording(EVENT.id, (EVENT,)))
    assert [route.call_count for route in (artifact, events)] == [1, 1]
    assert all(shows_key(call.request) for call in respx.calls)


@pytest.mark.usefixtures("in_cloud")
@respx.mock
async def test_the_evaluator_reads_and_starts_runs_in_its_workspace() -> None:
    deployment, run = uuid4(), uuid4()
    # The link of a page names the host as Cloud sees it.
    following = f"{WORKSPACE}/events/filter/next?page-token=abc"
    respx.post(f"{WORKSPACE}/events/filter").respond(
        json={"events": [{"id": "1", "occurred": NOW.isoformat()}], "next_page": following}
    )
    respx.get(f"{WORKSPACE}/events/filter/next").respond(
        json={"events": [{"id": "2", "occurred": (NOW + timedelta(seconds=1)).isoformat()}], "next_page": None}
    )
    respx.post(f"{WORKSPACE}/artifacts/filter").respond(json=[])
    answer = {"id": str(run), "deployment_id": str(deployment)}
    respx.post(f"{WORKSPACE}/deployments/{deployment}/create_flow_run").respond(201, json=answer)
    decision = Decision(uuid4(), 1, deployment, None, (EVENT,), NOW)
    async with prefect_api() as api:
        read = [event["id"] async for event in EventLog(api).between(NOW, NOW + timedelta(days=1), ["x"])]
        kept = [artifact async for artifact in ArtifactLog(api).updates_since(NOW)]
        made = await FlowRuns(api).create(decision, RunContext(decision.id, "report/daily"), None)
    assert (read, kept, made) == (["1", "2"], [], run)
    assert all(shows_key(call.request) for call in respx.calls)


class Stream:
    """An event stream that lets one in who knows the secret, and tells how each came."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []

    async def __call__(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        self.paths.append(socket.request.path)
        self.headers.append({name.lower(): value for name, value in socket.request.headers.raw_items()})
        shown = json.loads(await socket.recv())
        if shown != {"type": "auth", "token": self.secret}:
            await socket.send(json.dumps({"type": "auth_failure", "reason": "wrong"}))
            return
        await socket.send(json.dumps({"type": "auth_success"}))
        await socket.recv()
        await socket.send(json.dumps({"type": "event", "event": {"id": "1"}}))


@pytest.fixture
async def stream() -> AsyncIterator[tuple[Stream, str]]:
    stream = Stream("secret")
    async with serve(stream, "127.0.0.1", 0, subprotocols=["prefect"]) as server:  # pyright: ignore
        port = next(iter(server.sockets)).getsockname()[1]
        yield stream, f"http://127.0.0.1:{port}/api/accounts/a/workspaces/w"


@pytest.mark.parametrize("setting", [PREFECT_API_KEY, PREFECT_API_AUTH_STRING])
async def test_the_event_stream_of_a_workspace(stream: tuple[Stream, str], setting: Any) -> None:
    server, url = stream
    custom = {PREFECT_CLIENT_CUSTOM_HEADERS: {"x-proxy": "yes"}}
    with temporary_settings(updates={setting: "secret", **custom}):
        async with subscribe(url, names=["x"]) as events:
            assert await anext(events) == {"id": "1"}
    assert server.paths == ["/api/accounts/a/workspaces/w/events/out"]
    basic = b64encode(b"secret").decode()
    expected = "Bearer secret" if setting is PREFECT_API_KEY else f"Basic {basic}"
    assert (server.headers[0]["authorization"], server.headers[0]["x-proxy"]) == (expected, "yes")


async def test_the_event_stream_refuses(stream: tuple[Stream, str]) -> None:
    with (
        temporary_settings(updates={PREFECT_API_KEY: "wrong"}),
        pytest.raises(PrefectUnreachable, match="does not let us listen: wrong"),
    ):
        async with subscribe(stream[1], names=["x"]):
            pass


def test_a_servers_password_goes_before_a_key_that_is_left_in_the_profile() -> None:
    with temporary_settings(updates={PREFECT_API_KEY: "old", PREFECT_API_AUTH_STRING: "admin:secret"}):
        assert event_stream_token() == "admin:secret"
