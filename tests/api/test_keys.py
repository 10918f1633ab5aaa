"""Keys for reading, emitting and operating: each route needs exactly one right, and wrong keys wait."""

import asyncio
import logging
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from assetflow.api import connections
from assetflow.api.connections import FREE, LONGEST, WAITING, WrongKeys
from assetflow.api.requests import Backend
from assetflow.api.security import Access, Keys, Right, access_for, right_for
from assetflow.errors import InvalidSettings, PrefectRefused
from assetflow.ledger import Ledger
from assetflow.web import create_site
from tests.api.conftest import MakeApi
from tests.api.serving import serving

KEYS = Keys("everything-0123456789", "read-0123456789abcdef", "emit-0123456789abcdef")
BY_RIGHT = {Right.READ: KEYS.read, Right.EMIT: KEYS.emit, Right.OPERATE: KEYS.everything}
OPEN = {"/health", "/api/v1/health", "/hooks/{watcher}", "/login", "/static"}
WRITES = {
    Right.READ: {"POST /api/v1/events/known", "POST /api/v1/simulate", "POST /logout"},
    Right.EMIT: {
        "POST /api/v1/assets/{asset}/observations",
        "POST /api/v1/events",
        "POST /api/v2/assets/events",
        "POST /asset/events",
    },
    Right.OPERATE: {
        "DELETE /api/v1/assets/queuedEvent/{uri}",
        "DELETE /api/v1/consumers/{flow}/{deployment}/queue",
        "DELETE /api/v1/dags/{dag_id}/assets/queuedEvent",
        "DELETE /api/v1/dags/{dag_id}/assets/queuedEvent/{uri}",
        "DELETE /api/v2/assets/queuedEvent/{uri}",
        "DELETE /api/v2/assets/{asset_id}/queuedEvents",
        "DELETE /api/v2/dags/{dag_id}/assets/queuedEvent",
        "DELETE /api/v2/dags/{dag_id}/assets/queuedEvent/{uri}",
        "DELETE /api/v2/dags/{dag_id}/assets/queuedEvents",
        "DELETE /api/v2/dags/{dag_id}/assets/{asset_id}/queuedEvents",
        "POST /api/v1/assets/{asset}/hide",
        "POST /api/v1/assets/{asset}/materialize",
        "POST /api/v1/assets/{asset}/unhide",
        "POST /api/v1/backfills",
        "POST /api/v1/backfills/{number}/resume",
        "POST /api/v1/backfills/{number}/stop",
        "POST /api/v1/consumers/{flow}/{deployment}/pause",
        "POST /api/v1/consumers/{flow}/{deployment}/resume",
        "POST /api/v1/consumers/{flow}/{deployment}/retry",
        "POST /api/v1/consumers/{flow}/{deployment}/run",
        "POST /api/v1/decisions/{decision_id}/give-up",
        "POST /api/v1/decisions/{decision_id}/replay",
        "POST /api/v1/watchers/{watcher}/pause",
        "POST /api/v1/watchers/{watcher}/resume",
        "POST /api/v2/assets/{asset_id}/materialize",
        "POST /activity/{tree}/retry",
        "POST /asset/hide",
        "POST /asset/materialize",
        "POST /asset/unhide",
        "POST /backfills/new",
        "POST /backfills/{number}/resume",
        "POST /backfills/{number}/stop",
        "POST /consumers/switch",
        "POST /consumers/{flow}/{deployment}/remove",
        "POST /consumers/{flow}/{deployment}/retry",
        "POST /consumers/{flow}/{deployment}/run",
        "POST /consumers/{flow}/{deployment}/switch",
        "POST /decisions/{decision_id}/replay",
        "POST /runs/{flow_run}/again",
        "POST /runs/{flow_run}/retry",
    },
}


def no_prefect() -> Any:
    raise PrefectRefused("there is no Prefect here")


@pytest.fixture
def site(ledger: Ledger) -> FastAPI:
    return create_site(Backend(ledger, prefect=no_prefect), Access(KEYS))


@pytest.fixture
def client(site: FastAPI) -> Iterator[httpx.Client]:
    with serving(site) as url, httpx.Client(base_url=url, timeout=60, verify=False) as client:
        yield client


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """The method and the path of each route that is not open."""
    found: set[tuple[str, str]] = set()
    for route in iter_route_contexts(app.routes):
        path = re.sub(r":\w+}", "}", route.path or "")
        found |= {(method, path) for method in (route.methods or ()) if method != "HEAD" and path not in OPEN}
        assert route.methods or path in OPEN
    assert len(found) > 60
    return sorted(found)


def test_what_changes_something_has_the_right_that_is_meant(site: FastAPI) -> None:
    found: dict[Right, set[str]] = {right: set() for right in Right}
    for method, path in routes(site):
        if method != "GET":
            found[right_for(method, path)].add(f"{method} {path}")
    assert found == WRITES


@pytest.mark.parametrize("key", BY_RIGHT.values(), ids=BY_RIGHT)
def test_each_route_lets_in_one_key_and_the_one_for_everything(site: FastAPI, client: httpx.Client, key: str) -> None:
    for method, path in routes(site):
        if path == "/live":
            # It answers for as long as the page is open.
            continue
        address = re.sub(r"{\w+}", str(uuid4()), path)
        needed = next((right for right, writes in WRITES.items() if f"{method} {path}" in writes), Right.READ)
        headers = {"x-api-key": key, "content-type": "application/json"}
        status = client.request(method, address, headers=headers).status_code
        assert status not in (401, 429)
        assert (status == 403) == (key not in (BY_RIGHT[needed], KEYS.everything)), (method, path, key)


def test_a_refusal_says_which_key_it_takes(make_api: MakeApi) -> None:
    api = make_api(Access(KEYS))
    told = api.get("/api/v1/assets", headers={"x-api-key": KEYS.emit}).json()
    assert told["code"] == "not-allowed"
    assert told["detail"] == "this API key may only send updates, and this request needs one that may read"
    assert told["fix"] == "Use the API key ASSETFLOW_API_KEY_READ or ASSETFLOW_API_KEY"
    told = api.post("/api/v1/decisions/1/replay", headers={"authorization": f"Bearer {KEYS.read}"}).json()
    assert told["fix"] == "Use the API key ASSETFLOW_API_KEY"


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (Keys("short"), "ASSETFLOW_API_KEY has fewer than 16 characters"),
        (Keys(KEYS.everything, "short"), "ASSETFLOW_API_KEY_READ has fewer than 16"),
        (Keys(KEYS.everything, "", "short"), "ASSETFLOW_API_KEY_EMIT has fewer than 16"),
        (Keys("", KEYS.read), "without ASSETFLOW_API_KEY, so that the server asks nobody"),
        (
            Keys(KEYS.everything, KEYS.read, KEYS.read),
            "ASSETFLOW_API_KEY_READ and ASSETFLOW_API_KEY_EMIT are the same API key",
        ),
    ],
)
def test_keys_that_protect_nothing_are_refused(keys: Keys, told: str) -> None:
    with pytest.raises(InvalidSettings, match=told) as refused:
        access_for("0.0.0.0", keys)
    assert not [key for key in (keys.everything, keys.read, keys.emit) if key and key in str(refused.value)]


class Time:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


async def test_pauses_grow_for_each_address_or_network_alone() -> None:
    time = Time()
    wrong = WrongKeys(time, time.sleep)
    assert [await wrong.pause("10.0.0.7") for _ in range(FREE + 5)] == [0] * (FREE + 5)
    assert time.slept == [1, 2, 4, 5, 5]
    await wrong.pause("10.0.0.8")
    await wrong.pause("::ffff:10.0.0.8")
    assert len(time.slept) == 5
    time.now += 3600
    await wrong.pause("10.0.0.7")
    assert len(time.slept) == 5
    time = Time()
    wrong = WrongKeys(time, time.sleep)
    for number in range(FREE + 1):
        await wrong.pause(f"2001:db8::{number:x}")
    assert time.slept == [1]


async def test_many_at_once_are_refused_at_once() -> None:
    async def never(_seconds: float) -> None:
        await asyncio.Event().wait()

    wrong = WrongKeys(sleep=never)
    many = [asyncio.create_task(wrong.pause("10.0.0.7")) for _ in range(200)]
    done, waiting = await asyncio.wait(many, timeout=0)
    assert len(waiting) <= 2
    assert sorted({task.result() for task in done}) == [0, int(LONGEST)]
    many += [asyncio.create_task(wrong.pause(f"10.1.{number % 250}.1")) for number in range(2000)]
    done, waiting = await asyncio.wait(many, timeout=0)
    assert len(waiting) <= WAITING
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_memory_and_log_have_a_bound(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(connections, "ADDRESSES", 100)
    time = Time()
    wrong = WrongKeys(time, time.sleep)
    with caplog.at_level(logging.WARNING, "assetflow.api"):
        for number in range(1000):
            await wrong.pause(f"10.0.{number // 250}.{number % 250}")
    assert len(wrong._tries) == 100
    assert [record.getMessage() for record in caplog.records] == ["wrong API key from 10.0.0.0: 1 so far"]


def test_a_right_key_is_never_held_up(make_api: MakeApi) -> None:
    time = Time()
    api = make_api(Access(KEYS, wrong_keys=WrongKeys(time, time.sleep)))
    answers = [api.get("/api/v1/assets", headers={"x-api-key": f"wrong{number}"}) for number in range(6)]
    assert [answer.status_code for answer in answers] == [401] * 6
    assert time.slept == [1, 2, 4]
    assert api.get("/api/v1/assets", headers={"x-api-key": KEYS.read}).status_code == 200
    assert api.get("/api/v1/assets").status_code == 401
    other = {"x-api-key": "wrong", "x-forwarded-for": "10.0.0.9"}
    assert api.get("/api/v1/assets", headers=other).status_code == 401
    assert time.slept == [1, 2, 4]


def test_more_wrong_keys_than_can_wait_are_429(make_api: MakeApi) -> None:
    time = Time()
    wrong = WrongKeys(time, time.sleep)
    wrong._waiting = WAITING
    api = make_api(Access(KEYS, wrong_keys=wrong))
    answers = [api.get("/api/v1/assets", headers={"x-api-key": "wrong"}) for _ in range(FREE + 1)]
    assert [answer.status_code for answer in answers] == [401] * FREE + [429]
    assert answers[-1].headers["retry-after"] == "5"
    assert answers[-1].json()["fix"] == "Try again in 5 seconds, with the right API key"
