"""The events of a run that are too large for its context: written once, under one key for each consumer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast
from uuid import UUID, uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.core.wire import events_from_text
from assetflow.prefect_io.logs import ArtifactLog, decision_of, events_key
from assetflow.prefect_io.rest import Json, PrefectApi, prefect_api

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def decided() -> Decision:
    event = AssetEvent(uuid4(), Asset("s3://shop/orders"), NOW, Origin("api"))
    return Decision(uuid4(), 1, uuid4(), None, (event,), NOW)


async def kept_of(api: PrefectApi, consumer: str) -> list[UUID | None]:
    """The decisions whose events were written for a consumer, oldest first."""
    body = {"artifacts": {"key": {"any_": [events_key(consumer)]}}, "sort": "CREATED_DESC"}
    return [decision_of(each) for each in reversed(cast("list[Json]", await api.post("/artifacts/filter", body)))]


async def test_what_a_killed_process_has_written_is_found_again() -> None:
    consumer, first, second = f"report/{uuid4()}", decided(), decided()
    async with prefect_api() as api:
        log = ArtifactLog(api)
        # A process writes the artifact and dies before it has the run; the next one launches the same decision.
        one, other = [await log.keep_events(first, consumer) for _ in range(2)]
        assert one == other
        following = await log.keep_events(second, consumer)
        assert following == await log.keep_events(second, consumer)
        assert await kept_of(api, consumer) == [first.id, second.id]
        found = cast("Json", await api.get(f"/artifacts/{one}"))
        events = events_from_text(found["data"], where="the artifact")
        assert [event.id for event in events] == [event.id for event in first.events]


async def test_prefect_lists_one_entry_for_each_consumer() -> None:
    consumer, other = f"report/{uuid4()}", f"report/{uuid4()}"
    async with prefect_api() as api:
        for _ in range(3):
            await ArtifactLog(api).keep_events(decided(), consumer)
        await ArtifactLog(api).keep_events(decided(), other)
        keys = sorted(map(events_key, (consumer, other)))
        body = {"artifacts": {"key": {"any_": keys}}}
        listed = cast("list[Json]", await api.post("/artifacts/latest/filter", body))
        assert sorted(str(each["key"]) for each in listed) == keys
