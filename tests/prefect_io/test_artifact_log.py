"""Writing the events of a run to an artifact: what each answer to it means."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import httpx
import pytest
import respx

from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.errors import PrefectRefused, PrefectUnreachable
from assetflow.prefect_io.logs import ArtifactLog
from assetflow.prefect_io.rest import prefect_api
from tests.environment.prefect_settings import prefect_at

URL = "http://prefect.test/api"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ARTIFACT = UUID(int=9)


def decided() -> Decision:
    event = AssetEvent(UUID(int=1), Asset("s3://shop/orders"), NOW, Origin("api"))
    return Decision(UUID(int=2), 1, UUID(int=3), None, (event,), NOW)


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


@pytest.mark.parametrize("said", [{}, None, "there"])
async def test_an_answer_without_a_list_is_not_prefects(log: ArtifactLog, said: object) -> None:
    written = httpx.Response(201, json={"id": str(ARTIFACT)})
    prefect_says(listed=[httpx.Response(200, json=said)], written=written, health=WELL)
    with pytest.raises(PrefectUnreachable):
        await log.keep_events(decided(), "report/daily")
