"""The edge of tasks to Prefect's API: patient with a busy server, clear about everything else."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import httpx
import pytest
import respx
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_KEY, PREFECT_API_URL, temporary_settings

from assetflow.errors import PrefectUnreachable
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


@respx.mock
def test_patience_ends(connect: Callable[..., TaskApi], time: Time) -> None:
    respx.post(f"{URL}/events").mock(return_value=httpx.Response(503, text="database  is\nlocked"))
    with connect(patience=10.0) as api, pytest.raises(PrefectUnreachable) as caught:
        api.post("/events", [])
    assert 5 < time.now <= 10
    assert str(caught.value) == f"{URL}: Prefect answers 503 to POST /events: database is locked (tried for 10 s)"


@pytest.mark.parametrize("other", [{}, [], ["ok"], {"id": 5}, "ok", 5, None], ids=str)
@respx.mock
def test_what_has_no_id_is_not_stored(connect: Callable[..., TaskApi], other: object) -> None:
    stored = {"id": str(UUID(int=1))}
    respx.post(f"{URL}/artifacts/").mock(
        side_effect=[httpx.Response(200, json=other), httpx.Response(201, json=stored)]
    )
    with connect() as api:
        assert api.create("/artifacts/", {}) == stored


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
