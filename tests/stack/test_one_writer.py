"""Requests to Prefect's server on SQLite: those that write take turns, and a refused one is repeated."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from assetflow.stack import prefect_server
from assetflow.stack.prefect_server import OneWriter
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until_async

ANY = ["GET", "POST", "PATCH"]


class Prefect:
    """An application whose first answers are refusals, and whose requests under `/api/slow` end when told to."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.bodies: list[bytes] = []
        self.going_on: list[str] = []
        self.may_end = asyncio.Event()
        routes = [Route("/slow", self.slow, methods=ANY), Route("/{path:path}", self.answer, methods=ANY)]
        # Like Prefect's, the API has handlers of its own, within the application that has the middleware.
        api = Starlette(routes=routes, exception_handlers={Exception: self.refuse})
        self.app = Starlette(routes=[Mount("/api", api)])
        self.app.add_middleware(OneWriter)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://prefect")

    async def answer(self, request: Request) -> Response:
        self.bodies.append(await request.body())
        if len(self.bodies) <= self.refusals:
            raise TimeoutError("database is locked")
        return Response("done", status_code=201, headers={"x-number": str(len(self.bodies))})

    async def refuse(self, _: Request, error: Exception) -> Response:
        return Response(str(error), status_code=503 if isinstance(error, TimeoutError) else 500)

    async def slow(self, request: Request) -> Response:
        self.going_on.append(request.method)
        await self.may_end.wait()
        self.going_on.remove(request.method)
        return Response()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefect_server, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(prefect_server, "SECONDS_TO_WAIT", 0.5)


async def test_a_refused_request_is_repeated_with_its_body() -> None:
    prefect = Prefect(refusals=3)
    answer = await prefect.client.post("/api/flow_runs/", content=b"a run")
    assert (answer.status_code, answer.text, answer.headers["x-number"]) == (201, "done", "4")
    assert prefect.bodies == [b"a run"] * 4


async def test_whoever_asks_hears_of_a_refusal_that_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefect_server, "SECONDS_TO_REPEAT", 0.5)
    prefect = Prefect(refusals=1_000)
    prefect.client = httpx.AsyncClient(
        transport=httpx.ASGITransport(prefect.app, raise_app_exceptions=False), base_url="http://prefect"
    )
    answer = await prefect.client.patch("/api/flow_runs/1/labels")
    assert (answer.status_code, answer.text) == (503, "database is locked")
    assert 2 < len(prefect.bodies) < 1_000


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/flow_runs/1"), ("POST", "/api/flow_runs/filter"), ("POST", "/api/flows/count")]
)
async def test_what_only_reads_is_neither_repeated_nor_held_up(method: str, path: str) -> None:
    prefect = Prefect(refusals=1)
    writing = asyncio.create_task(prefect.client.post("/api/slow"))
    await until_async(lambda: prefect.going_on == ["POST"])
    with pytest.raises(TimeoutError, match="database is locked"):
        await prefect.client.request(method, path)
    assert (await prefect.client.request(method, path)).status_code == 201
    assert prefect.going_on == ["POST"]
    prefect.may_end.set()
    await writing


async def test_requests_that_write_follow_each_other() -> None:
    prefect = Prefect()
    writing = [asyncio.create_task(prefect.client.request(method, "/api/slow")) for method in ("POST", "PATCH")]
    await until_async(lambda: prefect.going_on == ["POST"])
    await asyncio.wait(writing, timeout=0.05)
    assert prefect.going_on == ["POST"]
    prefect.may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*writing)] == [200, 200]


@pytest.mark.prefect
def test_requests_that_write_at_the_same_time_are_not_refused(prefect_server: PrefectServer) -> None:
    with httpx.Client(base_url=prefect_server.api_url, timeout=60) as http, ThreadPoolExecutor(16) as threads:
        flow = http.post("/flows/", json={"name": f"burst-{uuid4().hex}"}).json()["id"]

        def run(_: int) -> list[int]:
            made = http.post("/flow_runs/", json={"flow_id": flow})
            path = f"/flow_runs/{made.json()['id']}"
            labelled = http.patch(f"{path}/labels", json={"a": "b"})
            begun = http.post(f"{path}/set_state", json={"state": {"type": "RUNNING"}})
            return [made.status_code, labelled.status_code, begun.status_code]

        answers = Counter(status for statuses in threads.map(run, range(60)) for status in statuses)
    assert set(answers) == {201, 204}
