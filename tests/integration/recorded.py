"""What a Prefect server holds of updates, for tests of authoring."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from uuid import uuid4

from assetflow import flow
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent
from assetflow.prefect_io.names import UPDATE_ARTIFACT
from assetflow.prefect_io.recordings import recording_from_artifact
from assetflow.prefect_io.rest import TaskApi


def fresh(name: str = "asset") -> Asset:
    """An asset that no other test knows: the server is shared."""
    return Asset(f"s3://tests/{uuid4().hex}", name=f"{name}-{uuid4().hex[:8]}")


def artifacts() -> list[dict[str, Any]]:
    """The newest artifacts with recordings, newest first."""
    body = {"artifacts": {"type": {"any_": [UPDATE_ARTIFACT]}}, "sort": "CREATED_DESC", "limit": 200}
    with TaskApi.connect() as api:
        return cast("list[dict[str, Any]]", api.post("/artifacts/filter", body))


def recorded(*assets: Asset) -> list[AssetEvent]:
    """The recorded events of these assets, oldest first."""
    # Other tests leave artifacts that cannot be read on the same server: only those that name the assets are read.
    named = [each for each in reversed(artifacts()) if any(asset.uri in str(each["data"]) for asset in assets)]
    events = [event for artifact in named for event in recording_from_artifact(artifact).events]
    return [event for event in events if event.asset in assets]


@contextmanager
def new_events(*assets: Asset) -> Iterator[list[AssetEvent]]:
    """The events of these assets that the block records; filled in at its end."""
    before = len(recorded(*assets))
    found: list[AssetEvent] = []
    yield found
    found += recorded(*assets)[before:]


def in_flow(fn: Any) -> Any:
    """What a function returns inside a flow; a state that it returns is not the flow's own."""
    found: list[Any] = []

    @flow
    async def body() -> None:
        found.append(fn())

    # An async flow run is ten times as quick as a sync one.
    asyncio.run(body())
    return found[0]
