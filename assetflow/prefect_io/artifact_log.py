"""The recordings that tasks left as artifacts: durable before the task ended, whole, in the order of their creation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import cast

from assetflow.core.codec import event_to_json
from assetflow.core.consumers import Decision
from assetflow.prefect_io.names import TRIGGERING_EVENTS_ARTIFACT, UPDATE_ARTIFACT
from assetflow.prefect_io.rest import Json, PrefectApi, patiently

PAGE = 100


class ArtifactLog:
    """Our artifacts on a Prefect server."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api

    async def updates_since(self, moment: datetime) -> AsyncIterator[Json]:
        """The recordings created at or after a moment by the server's clock, newest first.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        offset = 0
        while True:
            # Newest first: what is created meanwhile moves later pages down, so that some are seen twice, none missed.
            body = {
                "artifacts": {"type": {"any_": [UPDATE_ARTIFACT]}},
                "sort": "CREATED_DESC",
                "limit": PAGE,
                "offset": offset,
            }
            ask = partial(self._api.post, "/artifacts/filter", body)
            page = cast("list[Json]", await (patiently(ask) if offset else ask()))
            for artifact in page:
                if created(artifact) < moment:
                    return
                yield artifact
            if len(page) < PAGE:
                return
            offset += PAGE

    async def keep_events(self, decision: Decision) -> str:
        """Write the events of a decision, once; the artifact's id.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        key = f"assetflow-{decision.id}"
        found = await self._api.get(f"/artifacts/{key}/latest")
        if found is None:
            found = await self._api.post(
                "/artifacts/",
                {
                    "key": key,
                    "type": TRIGGERING_EVENTS_ARTIFACT,
                    "description": f"{len(decision.events)} asset events that started a run",
                    "data": [event_to_json(event) for event in decision.events],
                },
            )
        return str(found["id"])


def created(artifact: Json) -> datetime:
    """When the server wrote an artifact, by its clock."""
    return datetime.fromisoformat(artifact["created"])
