"""The Prefect event that tells of each decision, so that people see why a run is there and automations can build on it.

Best effort: a decision is in the ledger and its run in Prefect, whether or not this is heard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from assetflow.errors import AssetflowError
from assetflow.evaluator.ports import Launch, UpdateLog
from assetflow.prefect_io.names import DECISION_MADE, deployment_resource_id
from assetflow.prefect_io.rest import Json

logger = logging.getLogger("assetflow.evaluator")

LARGEST_BATCH = 50
LONGEST_LINE = 5_000
ASSETS_NAMED = 90  # Prefect takes 100 related resources.


class Announcer:
    """Publishes `assetflow.decision.made` for launched decisions."""

    def __init__(self, events: UpdateLog, now: Callable[[], datetime]) -> None:
        self._events = events
        self._now = now
        self._line: asyncio.Queue[Json] = asyncio.Queue(LONGEST_LINE)

    def tell(self, launch: Launch, flow_run: UUID) -> None:
        """Put a launched decision into the line."""
        try:
            self._line.put_nowait(decision_made(launch, flow_run, self._now()))
        except asyncio.QueueFull:
            logger.debug("decision %s is not announced: too many wait", launch.decision.id)

    async def run(self) -> None:
        """Publish for ever."""
        while True:
            batch = [await self._line.get()]
            while len(batch) < LARGEST_BATCH and not self._line.empty():
                batch.append(self._line.get_nowait())
            try:
                await self._events.publish(batch)
            except AssetflowError as error:
                logger.debug("%d decisions are not announced: %s", len(batch), error)


def decision_made(launch: Launch, flow_run: UUID, occurred: datetime) -> dict[str, Any]:
    """The event of one decision. Its id is the decision's, so that it is stored once."""
    decision = launch.decision
    return {
        "id": str(decision.id),
        "occurred": occurred.isoformat(),
        "event": DECISION_MADE,
        "resource": {
            "prefect.resource.id": f"assetflow.decision.{decision.id}",
            "prefect.resource.name": launch.consumer,
        },
        "related": _related(launch, flow_run),
        "payload": {
            "version": 1,
            "consumer": launch.consumer,
            "partition_key": decision.target_key,
            "events": [str(event.id) for event in decision.events[:1000]],
            "number_of_events": len(decision.events),
        },
    }


def _related(launch: Launch, flow_run: UUID) -> list[dict[str, str]]:
    related = [
        _resource(f"prefect.flow-run.{flow_run}", "flow-run"),
        _resource(deployment_resource_id(launch.decision.deployment_id), "deployment"),
    ]
    if launch.automation is not None:
        related.append(_resource(f"prefect.automation.{launch.automation.id}", "automation", launch.automation.name))
    assets = {event.uri: event.asset.name for event in launch.decision.events}
    return related + [_resource(uri, "asset", name) for uri, name in list(assets.items())[:ASSETS_NAMED]]


def _resource(number: str, role: str, name: str = "") -> dict[str, str]:
    named = {"prefect.resource.name": name} if name else {}
    return {"prefect.resource.id": number, "prefect.resource.role": role, **named}
