"""A password in PREFECT_API_URL is used for every connection, and is in no message."""

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from threading import get_ident

import httpx
import pytest
import respx
from prefect.settings import PREFECT_API_URL, temporary_settings
from websockets.asyncio.server import ServerConnection, serve

from assetflow.authoring.remote import RemoteApi
from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io.rest import TaskApi, prefect_api
from assetflow.prefect_io.websocket import subscribe

WITH_PASSWORD = "http://alice:secretpw@prefect.internal:4200/api"
SHOWN = "http://prefect.internal:4200/api"
BASIC = "Basic " + b64encode(b"alice:secretpw").decode()


@pytest.fixture(autouse=True)
def _address() -> Iterator[None]:
    with temporary_settings(updates={PREFECT_API_URL: WITH_PASSWORD}):
        yield


def told(error: BaseException | None) -> str:
    """All that an error and its causes say."""
    return "" if error is None else f"{error!r} {error} {told(error.__cause__)}"


@respx.mock
async def test_the_evaluators_requests() -> None:
    respx.get(path="/api/ok").respond(200, json={"id": 1})
    respx.get(path="/api/html").respond(200, text="<html>")
    respx.get(path="/api/away").mock(side_effect=httpx.ConnectError("refused"))
    async with prefect_api() as api:
        assert await api.get("/ok") == {"id": 1}
        assert api.url == SHOWN
        for path in ("/html", "/away"):
            with pytest.raises(PrefectUnreachable) as refused:
                await api.get(path)
            assert "secretpw" not in told(refused.value)
            assert SHOWN in refused.value.where
    assert {call.request.headers["authorization"] for call in respx.calls} == {BASIC}


@respx.mock
async def test_the_log_of_requests_has_no_password(caplog: pytest.LogCaptureFixture) -> None:
    """A user's flow may log what `httpx` says of each request."""
    caplog.set_level(logging.DEBUG)
    route = respx.route().respond(200, json={})
    async with prefect_api() as api:
        await api.get("/ok")
    with TaskApi.connect(patience=0) as tasks:
        tasks.post("/artifacts/", {})
    with RemoteApi("https://alice:secretpw@flows.example.org") as remote:
        remote.get("/api/v1/assets")
    assert {call.request.headers["authorization"] for call in route.calls} == {BASIC}
    # Prefect sends the logs of earlier flows from a thread of its own.
    said = [each.getMessage() for each in caplog.records if each.thread == get_ident()]
    assert sum(each.startswith("HTTP Request: ") for each in said) == 3
    assert "secretpw" not in caplog.text


@respx.mock
def test_a_tasks_requests() -> None:
    route = respx.post(path="/api/artifacts/").respond(503)
    with TaskApi.connect(patience=0) as api, pytest.raises(PrefectUnreachable) as refused:
        api.post("/artifacts/", {})
    assert route.calls[0].request.headers["authorization"] == BASIC
    assert refused.value.where == SHOWN
    assert "secretpw" not in told(refused.value)


async def test_the_event_stream() -> None:
    shown: list[str] = []

    async def refuse(socket: ServerConnection) -> None:
        assert socket.request is not None
        shown.append(socket.request.headers["authorization"])
        await socket.recv()
        await socket.send(json.dumps({"type": "auth_failure", "reason": "wrong"}))

    async with serve(refuse, "127.0.0.1", 0, subprotocols=["prefect"]) as server:  # pyright: ignore
        port = next(iter(server.sockets)).getsockname()[1]
        with pytest.raises(PrefectUnreachable) as refused:
            async with subscribe(f"http://alice:secretpw@127.0.0.1:{port}/api", names=["x"]):
                pass
    assert shown == [BASIC]
    assert refused.value.where == f"ws://127.0.0.1:{port}/api/events/out"
