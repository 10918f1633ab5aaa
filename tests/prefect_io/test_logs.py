"""Reading Prefect's logs page by page: what fails now and then is asked for again, and the reading goes on."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import respx

from assetflow.prefect_io import rest
from assetflow.prefect_io.connection import AskAgain
from assetflow.prefect_io.logs import ArtifactLog, EventLog
from assetflow.prefect_io.rest import PrefectApi, prefect_api
from tests.environment.prefect_settings import prefect_at

URL = "http://prefect.test/api"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PrefectApi]:
    monkeypatch.setattr(rest, "WHEN_BUSY", AskAgain(times=3, first_pause=0.0))
    with prefect_at(URL), respx.mock:
        respx.get(f"{URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
        async with prefect_api() as api:
            yield api


def busy_after_the_first(answer: Any) -> Any:
    asked = 0

    def respond(request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        return httpx.Response(503) if asked % 3 == 0 else answer(request)

    return respond


class Artifacts:
    """Prefect's list of artifacts, one a second; so many more are made before each answer.

    Attributes:
        known: their numbers, oldest first.
    """

    def __init__(self, number: int, more: int = 0) -> None:
        self.known = list(range(number))
        self.asked = 0
        self._more = more

    def page(self, request: httpx.Request) -> list[dict[str, Any]]:
        body = json.loads(request.content)
        assert body["sort"] == "UPDATED_DESC"
        self.asked += 1
        found = self.known[::-1][body["offset"] : body["offset"] + body["limit"]]
        self.known += range(len(self.known), len(self.known) + self._more)
        return [{"id": str(number), "created": at(number), "updated": at(number)} for number in found]


def at(number: int) -> str:
    return (NOON + timedelta(seconds=number)).isoformat()


class Events:
    """Prefect's list of events, with these seconds as the times at which they occurred.

    Attributes:
        mixes: True to sort by time only, as Postgres does: each page has its own order of the events of an instant.
    """

    def __init__(self, *occurred: int, mixes: bool = False) -> None:
        self.events = [{"id": str(number), "occurred": at(second)} for number, second in enumerate(occurred)]
        self.farthest = 0
        self.mixes = mixes

    def first(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        occurred = body["filter"]["occurred"]
        return self._page(occurred["since"], occurred["until"], body["limit"], 0)

    def following(self, request: httpx.Request) -> httpx.Response:
        since, until, size, offset = request.url.params["page-token"].split("|")
        return self._page(since, until, int(size), int(offset))

    def _page(self, since: str, until: str, size: int, offset: int) -> httpx.Response:
        self.farthest = max(self.farthest, offset)
        found = [event for event in self.events if since <= event["occurred"] <= until]
        if self.mixes:
            Random(size + offset).shuffle(found)
            found.sort(key=lambda event: event["occurred"])
        token = quote(f"{since}|{until}|{size}|{offset + size}")
        link = f"http://elsewhere/api/events/filter/next?page-token={token}" if offset + size < len(found) else None
        page = {"events": found[offset : offset + size], "total": len(found), "next_page": link}
        return httpx.Response(200, json=page)


async def read_events(api: PrefectApi, first: Any, following: Any) -> list[Any]:
    """Read all events of a Prefect that gives these answers for the first page and for each that follows."""
    respx.post(f"{URL}/events/filter").mock(side_effect=first)
    respx.get(f"{URL}/events/filter/next").mock(side_effect=following)
    return [event async for event in EventLog(api).between(NOON, NOON + timedelta(days=1), ["a"])]


async def test_the_event_log_is_read_to_its_end_though_prefect_is_busy_now_and_then(api: PrefectApi) -> None:
    events = Events(*range(2_000))
    first, following = busy_after_the_first(events.first), busy_after_the_first(events.following)
    assert await read_events(api, first, following) == events.events


async def read(api: PrefectApi, since: int) -> list[int]:
    """The numbers of the artifacts, in the order in which they are read."""
    moment = NOON + timedelta(seconds=since)
    return [int(each["id"]) async for each in ArtifactLog(api).updates_since(moment)]


@pytest.mark.parametrize(("number", "since"), [(0, 0), (1, 0), (199, 0), (200, 0), (201, 0), (1_000, 0), (1_000, 990)])
async def test_artifacts_are_read_oldest_first(api: PrefectApi, number: int, since: int) -> None:
    respx.post(f"{URL}/artifacts/filter").mock(side_effect=answering(Artifacts(number)))
    assert await read(api, since) == list(range(since, number))


@pytest.mark.parametrize("more", [1, 19, 30, 90])
async def test_artifacts_that_are_made_meanwhile_move_none_out_of_sight(api: PrefectApi, more: int) -> None:
    artifacts = Artifacts(1_000, more)
    respx.post(f"{URL}/artifacts/filter").mock(side_effect=answering(artifacts))
    found = await read(api, since=3)
    assert found == list(range(3, found[-1] + 1))
    assert found[-1] >= 999


def answering(artifacts: Artifacts) -> Any:
    return lambda request: httpx.Response(200, json=artifacts.page(request))


@pytest.mark.parametrize("of_one", [2, 30, 49, 50, 51, 60])
async def test_events_of_one_instant_are_all_read_though_only_time_sorts_them(api: PrefectApi, of_one: int) -> None:
    events = Events(*(number // of_one for number in range(40 * of_one)), mixes=True)
    found = await read_events(api, events.first, events.following)
    assert [event["occurred"] for event in found] == sorted(event["occurred"] for event in found)
    assert sorted(int(event["id"]) for event in found) == list(range(40 * of_one))
