"""Going through old artifacts while some are deleted and new ones are made: each old one is seen, no young one is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import respx

from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io import logs
from assetflow.prefect_io.logs import OldArtifacts
from assetflow.prefect_io.rest import prefect_api
from tests.environment.prefect_settings import prefect_at

URL = "http://127.0.0.1:9/api"
NOW = datetime(2026, 11, 1, tzinfo=UTC)


class Artifacts:
    """A Prefect that has artifacts, one for each hour before now."""

    def __init__(self, count: int) -> None:
        self.there = [self.made(hours) for hours in range(count)]
        self.busy = 0
        self.asked = 0

    def made(self, hours: int) -> dict[str, Any]:
        return {"id": str(hours), "created": (NOW - timedelta(hours=hours)).isoformat()}

    def listed(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        body = json.loads(request.content)
        assert body["artifacts"] == {"type": {"any_": ["assetflow-update"]}}
        page = self.there[body["offset"] : body["offset"] + body["limit"]]
        return httpx.Response(200, json=page)

    def delete(self, request: httpx.Request) -> httpx.Response:
        if self.busy:
            self.busy -= 1
            return httpx.Response(503)
        number = request.url.path.rpartition("/")[2]
        self.there = [each for each in self.there if each["id"] != number]
        return httpx.Response(204)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Artifacts]:
    monkeypatch.setattr(logs, "PAGE", 7)
    monkeypatch.setattr(logs, "FIRST_PAUSE", 0.0)
    artifacts = Artifacts(100)
    with respx.mock(assert_all_called=False) as mock, prefect_at(URL):
        mock.get(f"{URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
        mock.post(f"{URL}/artifacts/count").mock(side_effect=lambda _: httpx.Response(200, json=len(artifacts.there)))
        mock.post(f"{URL}/artifacts/filter").mock(side_effect=artifacts.listed)
        mock.delete(url__startswith=f"{URL}/artifacts/").mock(side_effect=artifacts.delete)
        yield artifacts


@pytest.mark.parametrize("every", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("hours", [0, 1, 42, 99, 200])
async def test_each_old_one_is_seen_while_some_are_deleted(there: Artifacts, every: int, hours: int) -> None:
    young = [each["id"] for each in there.there[: hours + 1]]
    seen: list[str] = []
    async with prefect_api() as api:
        old = OldArtifacts(api, "recordings", NOW - timedelta(hours=hours))
        async for page in old.pages():
            seen += [each["id"] for each in page]
            for artifact in page:
                if int(artifact["id"]) % every == 0:
                    await old.delete(artifact)
    assert seen == [str(number) for number in range(hours + 1, 100)]
    assert [each["id"] for each in there.there] == [*young, *(each for each in seen if int(each) % every)]


async def test_new_ones_meanwhile_hide_none(there: Artifacts) -> None:
    seen: list[str] = []
    async with prefect_api() as api:
        old = OldArtifacts(api, "recordings", NOW - timedelta(hours=50))
        async for page in old.pages():
            seen += [each["id"] for each in page]
            there.there = [{"id": "new", "created": NOW.isoformat()}] * 5 + there.there
    assert set(seen) == {str(number) for number in range(51, 100)}


async def test_the_way_to_the_old_ones_is_short(there: Artifacts) -> None:
    there.there = [there.made(number) for number in range(10_000)]
    async with prefect_api() as api:
        async for page in OldArtifacts(api, "recordings", NOW - timedelta(hours=9_990)).pages():
            assert all(int(each["id"]) > 9_990 for each in page)
    assert there.asked < 20


async def test_a_busy_prefect_is_asked_again(there: Artifacts) -> None:
    there.busy = 3
    async with prefect_api() as api:
        old = OldArtifacts(api, "recordings", NOW - timedelta(hours=97))
        async for page in old.pages():
            for artifact in page:
                await old.delete(artifact)
        assert len(there.there) == 98
        there.busy = 100
        with pytest.raises(PrefectUnreachable):
            await old.delete({"id": "1"})
