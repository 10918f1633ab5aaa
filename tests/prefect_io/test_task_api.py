"""The edge of tasks to Prefect's API: patient with a busy server, clear about everything else."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import httpx
import pytest
import respx
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_KEY, PREFECT_API_URL, temporary_settings

from assetflow.errors import AssetflowError, PrefectUnreachable
from assetflow.prefect_io.rest import TaskApi

URL = "http://prefect.test/api"


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def connect(time: Time) -> Callable[..., TaskApi]:
    def make(patience: float = 30.0) -> TaskApi:
        return TaskApi(URL, sleep=time.sleep, clock=lambda: time.now, patience=patience)

    return make


@pytest.mark.parametrize("busy", [503, 500, 502, 504, 429, 408])
@respx.mock
def test_a_busy_server_is_asked_again(connect: Callable[..., TaskApi], time: Time, busy: int) -> None:
    route = respx.post(f"{URL}/artifacts/").mock(
        side_effect=[httpx.Response(busy), httpx.Response(busy), httpx.Response(201, json={"id": 1})]
    )
    with connect() as api:
        assert api.post("/artifacts/", {}) == {"id": 1}
    assert route.call_count == 3
    assert time.pauses[0] < time.pauses[1]


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.ReadError("cut")])
@respx.mock
def test_a_lost_connection_is_tried_again(connect: Callable[..., TaskApi], failure: Exception) -> None:
    respx.get(f"{URL}/health").mock(side_effect=[failure, httpx.Response(200, json=True)])
    with connect() as api:
        assert api.get("/health") is True


@respx.mock
def test_patience_ends(connect: Callable[..., TaskApi], time: Time) -> None:
    respx.post(f"{URL}/events").mock(return_value=httpx.Response(503, text="database  is\nlocked"))
    with connect(patience=10.0) as api, pytest.raises(PrefectUnreachable) as caught:
        api.post("/events", [])
    assert 5 < time.now <= 10
    assert str(caught.value) == f"{URL}: Prefect answers 503 to POST /events: database is locked (tried for 10 s)"


@respx.mock
def test_the_pause_that_the_server_asks_for_is_kept(connect: Callable[..., TaskApi], time: Time) -> None:
    respx.post(f"{URL}/events").mock(
        side_effect=[httpx.Response(429, headers={"Retry-After": "7"}), httpx.Response(204)]
    )
    with connect() as api:
        assert api.post("/events", []) is None
    assert time.pauses == [7.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
@respx.mock
def test_a_refusal_is_final(connect: Callable[..., TaskApi], time: Time, status: int) -> None:
    route = respx.post(f"{URL}/artifacts/").mock(return_value=httpx.Response(status, json={"detail": "no"}))
    with connect() as api, pytest.raises(AssetflowError, match=str(status)):
        api.post("/artifacts/", {})
    assert route.call_count == 1
    assert not time.pauses


@pytest.mark.parametrize("other", [{}, [], ["ok"], {"id": 5}, "ok", 5, None], ids=str)
@respx.mock
def test_what_has_no_id_is_not_stored(connect: Callable[..., TaskApi], other: object) -> None:
    stored = {"id": str(UUID(int=1))}
    respx.post(f"{URL}/artifacts/").mock(
        side_effect=[httpx.Response(200, json=other), httpx.Response(201, json=stored)]
    )
    with connect() as api:
        assert api.create("/artifacts/", {}) == stored


@pytest.mark.parametrize("other", [httpx.Response(200, html="<html>Sign in</html>"), httpx.Response(404)])
@respx.mock
def test_an_answer_of_something_else_is_tried_again(connect: Callable[..., TaskApi], other: httpx.Response) -> None:
    respx.get(f"{URL}/x").mock(side_effect=[other, httpx.Response(200, json=1)])
    with connect() as api:
        assert api.get("/x") == 1


@respx.mock
def test_a_server_that_guards_against_forgery_gets_its_token(connect: Callable[..., TaskApi]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        known = request.headers.get("Prefect-Csrf-Token") == "abc"
        return httpx.Response(204) if known else httpx.Response(403, json={"detail": "Missing CSRF token."})

    respx.post(f"{URL}/events").mock(side_effect=answer)
    respx.get(url__startswith=f"{URL}/csrf-token").mock(return_value=httpx.Response(200, json={"token": "abc"}))
    with connect() as api:
        assert api.post("/events", []) is None


@pytest.mark.parametrize(
    ("setting", "value", "header"),
    [(PREFECT_API_KEY, "k", "Bearer k"), (PREFECT_API_AUTH_STRING, "u:p", "Basic dTpw")],
)
@respx.mock
def test_prefects_settings_are_used(setting: object, value: str, header: str) -> None:
    route = respx.get(f"{URL}/x").mock(return_value=httpx.Response(200, json=1))
    changed = {PREFECT_API_URL: URL, setting: value}
    with temporary_settings(updates=changed), TaskApi.connect() as api:  # pyright: ignore[reportArgumentType]
        api.get("/x")
    assert route.calls.last.request.headers["Authorization"] == header


def test_without_a_server_the_error_says_how_to_name_one() -> None:
    with pytest.raises(PrefectUnreachable, match="PREFECT_API_URL"):
        TaskApi.connect()


@pytest.mark.parametrize("failure", [RuntimeError("timed out"), httpx.ReadTimeout("timed out")])
def test_a_server_that_prefect_starts_in_vain_is_said_to_be_unreachable(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def never_ready(**_: object) -> None:
        raise failure

    monkeypatch.setattr("prefect.client.orchestration.get_client", never_ready)

    with pytest.raises(PrefectUnreachable, match=r"timed out\. .* `prefect server start`\. Set PREFECT_API_URL"):
        TaskApi.connect()
