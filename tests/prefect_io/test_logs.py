"""Reading Prefect's logs page by page: what fails now and then is asked for again, and the reading goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import respx
from prefect.settings import PREFECT_API_URL, temporary_settings

from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io import rest
from assetflow.prefect_io.artifact_log import ArtifactLog
from assetflow.prefect_io.event_log import EventLog
from assetflow.prefect_io.rest import PrefectApi, prefect_api

URL = "http://prefect.test/api"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
PAGES = 40


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PrefectApi]:
    monkeypatch.setattr(rest, "PAUSES_WHEN_BUSY", (0.0, 0.0, 0.0))
    with temporary_settings(updates={PREFECT_API_URL: URL}), respx.mock:
        respx.get(f"{URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
        async with prefect_api() as api:
            yield api


def busy_each_third_time(answer: Any) -> Any:
    asked = 0

    def respond(request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        return httpx.Response(503) if asked % 3 == 0 else httpx.Response(200, json=answer(request))

    return respond


def page_of_events(request: httpx.Request) -> dict[str, Any]:
    number = int(request.url.params.get("page-token", 0))
    link = f"http://elsewhere/api/events/filter/next?page-token={number + 1}"
    return {"events": [{"number": number}], "next_page": link if number + 1 < PAGES else None}


def page_of_artifacts(request: httpx.Request) -> list[dict[str, Any]]:
    offset = json.loads(request.content)["offset"]
    moments = [NOON - timedelta(seconds=offset + place) for place in range(100)]
    return [{"created": moment.isoformat()} for moment in moments]


async def test_the_event_log_is_read_to_its_end_though_prefect_is_busy_now_and_then(api: PrefectApi) -> None:
    respond = busy_each_third_time(page_of_events)
    respx.post(f"{URL}/events/filter").mock(side_effect=respond)
    respx.get(f"{URL}/events/filter/next").mock(side_effect=respond)
    found = [event["number"] async for event in EventLog(api).between(NOON, NOON, ["a"])]
    assert found == list(range(PAGES))


async def test_the_artifacts_are_read_to_their_end_though_prefect_is_busy_now_and_then(api: PrefectApi) -> None:
    respx.post(f"{URL}/artifacts/filter").mock(side_effect=busy_each_third_time(page_of_artifacts))
    found = [each async for each in ArtifactLog(api).updates_since(NOON - timedelta(seconds=100 * PAGES - 1))]
    assert len(found) == 100 * PAGES


async def test_a_prefect_that_stays_away_is_told_of_at_once_or_in_a_moment(api: PrefectApi) -> None:
    first = respx.post(f"{URL}/events/filter").respond(503)
    with pytest.raises(PrefectUnreachable):
        _ = [event async for event in EventLog(api).between(NOON, NOON, ["a"])]
    assert first.call_count == 1
    respx.post(f"{URL}/events/filter").respond(200, json=page_of_events(httpx.Request("GET", URL)))
    following = respx.get(f"{URL}/events/filter/next").respond(503)
    with pytest.raises(PrefectUnreachable):
        _ = [event async for event in EventLog(api).between(NOON, NOON, ["a"])]
    assert following.call_count == 4
