"""Artifacts: writing the events of a run to one, and going through old ones while some are deleted."""

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
import respx

from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.errors import PrefectRefused, PrefectUnreachable
from assetflow.prefect_io import logs, rest
from assetflow.prefect_io.connection import AskAgain
from assetflow.prefect_io.logs import ArtifactLog, OldArtifacts
from assetflow.prefect_io.rest import prefect_api
from tests.environment.prefect_settings import prefect_at

URL = "http://prefect.test/api"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def decided() -> Decision:
    event = AssetEvent(uuid4(), Asset("s3://shop/orders"), NOW, Origin("api"))
    return Decision(uuid4(), 1, uuid4(), None, (event,), NOW)


def refusing(status: int) -> httpx.Response:
    return httpx.Response(status, json={"detail": "Invalid request"})


@pytest.fixture
async def log() -> AsyncIterator[ArtifactLog]:
    with prefect_at(URL), respx.mock:
        async with prefect_api() as api:
            yield ArtifactLog(api)


def prefect_says(*, listed: list[httpx.Response], written: httpx.Response, health: httpx.Response) -> None:
    respx.post(f"{URL}/artifacts/filter").mock(side_effect=listed)
    respx.post(f"{URL}/artifacts/").mock(return_value=written)
    respx.get(f"{URL}/health").mock(return_value=health)
    respx.get(f"{URL}/admin/version").respond(404, json={"detail": "Not Found"})


EMPTY = httpx.Response(200, json=[])
WELL = httpx.Response(200, json=True)


@pytest.mark.parametrize("status", [400, 409, 413, 422])
async def test_what_prefect_itself_refuses_is_refused(log: ArtifactLog, status: int) -> None:
    prefect_says(listed=[EMPTY, EMPTY], written=refusing(status), health=WELL)
    with pytest.raises(PrefectRefused, match=f"{status}.*Invalid request"):
        await log.keep_events(decided(), "report/daily")


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422])
async def test_a_refusal_that_prefect_does_not_confirm_is_none(log: ArtifactLog, status: int) -> None:
    refused = refusing(status)
    for listed, health in ([refused], refused), ([EMPTY, refused], WELL), ([EMPTY, EMPTY], refused):
        prefect_says(listed=listed, written=refused, health=health)
        with pytest.raises(PrefectUnreachable, match="Prefect itself does not confirm it"):
            await log.keep_events(decided(), "report/daily")


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
    monkeypatch.setattr(rest, "WHEN_BUSY", AskAgain(times=5, first_pause=0.0))
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
