"""What an answer of Prefect's API means: the same for tasks and for the evaluator."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest
import respx

from assetflow.errors import PrefectNotFound, PrefectRefused, PrefectUnauthorized, PrefectUnreachable
from assetflow.prefect_io import rest
from assetflow.prefect_io.rest import TaskApi, patiently, prefect_api
from tests.environment.prefect_settings import prefect_at

URL = "http://prefect.test/api"
PAGE = "<html>Sign in</html>"
# Sends a POST for at most so many seconds, and returns what the answer says.
Send = Callable[[float], Awaitable[object]]


class Pauses:
    """A clock that only pausing moves; it stands in for the clients' clocks."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)

    async def later(self, seconds: float) -> None:
        self(seconds)

    @property
    def now(self) -> float:
        return sum(self.seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


def task_api(pauses: Pauses, patience: float = 30) -> TaskApi:
    return TaskApi(URL, patience=patience, sleep=pauses, clock=lambda: pauses.now)


@pytest.fixture(params=["tasks", "evaluator"])
def send(request: pytest.FixtureRequest, pauses: Pauses, monkeypatch: pytest.MonkeyPatch) -> Iterator[Send]:
    """Each of the two clients."""

    async def of_tasks(seconds: float) -> object:
        with task_api(pauses, seconds) as api:
            return api.post("/things", {})

    async def of_evaluator(seconds: float) -> object:
        async with prefect_api() as api:
            return await patiently(lambda: api.post("/things", {}), within=seconds)

    with prefect_at(URL), respx.mock:
        # Prefect's client asks for a token before its first change.
        respx.get(f"{URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
        # Only this module's pauses: Prefect's own tasks pause beside it.
        monkeypatch.setattr(rest, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": pauses.later}))
        yield of_tasks if request.param == "tasks" else of_evaluator


def prefect_answers(*answers: httpx.Response | Exception) -> respx.Route:
    return respx.post(f"{URL}/things").mock(side_effect=answers)


@pytest.mark.parametrize("body", [{"json": {"detail": "Invalid key"}}, {"json": {}}, {"text": PAGE}], ids=str)
@pytest.mark.parametrize("status", [401, 403])
async def test_who_is_not_let_in_is_told_at_once(send: Send, pauses: Pauses, status: int, body: dict[str, Any]) -> None:
    route = prefect_answers(httpx.Response(status, **body))
    with pytest.raises(PrefectUnauthorized) as told:
        await send(30)
    assert str(told.value) == (
        f"{URL}: Prefect does not let us in ({status} for POST /things). "
        "Check PREFECT_API_KEY and PREFECT_API_AUTH_STRING"
    )
    assert (route.call_count, pauses.seconds) == (1, [])


@pytest.mark.parametrize("name", ["detail", "exception_detail", "exception_message"])
@pytest.mark.parametrize("status", [400, 409, 413, 422])
async def test_what_prefect_itself_refuses_stays_refused(send: Send, pauses: Pauses, status: int, name: str) -> None:
    route = prefect_answers(httpx.Response(status, json={name: "it is taken"}))
    with pytest.raises(PrefectRefused, match=f"^Prefect answers {status} to POST /things: it is taken$") as told:
        await send(30)
    assert not isinstance(told.value, PrefectNotFound)
    assert (route.call_count, pauses.seconds) == (1, [])


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, text=PAGE),
        httpx.Response(404, json={"detail": "Not Found"}),
        httpx.Response(409, json={}),
        httpx.Response(422, json=["x"]),
        httpx.Response(405, json={"detail": "Method Not Allowed"}),
        httpx.Response(408),
        httpx.Response(429),
        httpx.Response(500, json={"exception_message": "Internal Server Error"}),
        httpx.Response(502, text=PAGE),
        httpx.Response(503),
        httpx.Response(504),
        httpx.Response(200, text=PAGE),
        httpx.ReadTimeout("slow"),
        httpx.ConnectError("refused"),
        httpx.RemoteProtocolError("the answer was lost"),
        httpx.DecodingError("cut off"),
    ],
    ids=str,
)
async def test_every_other_answer_is_asked_for_again(
    send: Send, pauses: Pauses, answer: httpx.Response | Exception
) -> None:
    route = prefect_answers(answer, answer, httpx.Response(201, json={"id": 1}))
    assert await send(30) == {"id": 1}
    assert route.call_count == 3
    assert 0 < pauses.seconds[0] < pauses.seconds[1]


@pytest.mark.parametrize("status", [429, 503])
async def test_the_pause_that_prefect_asks_for_is_kept(send: Send, pauses: Pauses, status: int) -> None:
    prefect_answers(httpx.Response(status, headers={"Retry-After": "7"}), httpx.Response(204))
    assert await send(30) is None
    assert pauses.seconds == [7.0]


@pytest.mark.parametrize(
    ("failure", "named"), [(httpx.ConnectError("refused"), "refused"), (httpx.ReadTimeout(""), "ReadTimeout")], ids=str
)
async def test_a_server_that_is_away_is_named(send: Send, failure: Exception, named: str) -> None:
    prefect_answers(failure)
    with pytest.raises(PrefectUnreachable, match=rf"^{URL}: Prefect does not answer: {named}.*PREFECT_API_URL"):
        await send(0)


# Of tasks alone


def test_without_a_server_the_error_says_how_to_name_one() -> None:
    with pytest.raises(PrefectUnreachable, match="PREFECT_API_URL"):
        TaskApi.connect()


@pytest.mark.parametrize("other", [{}, [], ["ok"], {"id": 5}, "ok", 5, None], ids=str)
@respx.mock
def test_what_has_no_id_is_not_stored(pauses: Pauses, other: object) -> None:
    stored = {"id": str(UUID(int=1))}
    respx.post(f"{URL}/artifacts/").mock(
        side_effect=[httpx.Response(200, json=other), httpx.Response(201, json=stored)]
    )
    with task_api(pauses) as api:
        assert api.create("/artifacts/", {}) == stored
