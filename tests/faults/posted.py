"""Updates that somebody posts to Prefect as events, many at a time."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

from tests.faults.world import World, updates_filter

BATCH = 100


def event(uri: str, occurred: datetime, **extra: Any) -> dict[str, Any]:
    return {
        "id": str(uuid4()),
        "event": "assetflow.asset.updated",
        "occurred": occurred.isoformat(),
        "resource": {"prefect.resource.id": uri},
        "related": [],
        "payload": {"extra": extra},
    }


def post_all(world: World, events: list[dict[str, Any]]) -> None:
    """Post events, and return when Prefect's log has them."""
    before = _in_log(world)
    for start in range(0, len(events), BATCH):
        world.post("/events", events[start : start + BATCH])
    world.until(lambda: _in_log(world) >= before + len(events), 300)


def _in_log(world: World) -> int:
    return world.post("/events/filter", {"filter": updates_filter(), "limit": 1})["total"]
