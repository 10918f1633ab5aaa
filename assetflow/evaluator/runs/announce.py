"""Publish an event in Prefect for each launched decision.

This is best effort: decision and run exist whether or not the event is published.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from assetflow.errors import AssetflowError
from assetflow.evaluator.ports import Json, Launch, UpdateLog

logger = logging.getLogger("assetflow.evaluator")

LARGEST_BATCH = 50
LONGEST_QUEUE = 5_000


class Announcer:
    """Publishes the events of launched decisions, in batches.

    Parameters:
        to_event: returns the event that announces a decision and its run.
    """

    def __init__(self, events: UpdateLog, to_event: Callable[[Launch, UUID], Json]) -> None:
        self._events = events
        self._to_event = to_event
        self._queue: asyncio.Queue[Json] = asyncio.Queue(LONGEST_QUEUE)

    def announce(self, launch: Launch, flow_run: UUID) -> None:
        """Queue the event of a launched decision."""
        try:
            self._queue.put_nowait(self._to_event(launch, flow_run))
        except asyncio.QueueFull:
            logger.debug("decision %s is not announced: too many are queued", launch.decision.id)

    async def run(self) -> None:
        """Publish what is queued, until cancelled."""
        while True:
            batch = [await self._queue.get()]
            while len(batch) < LARGEST_BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            try:
                await self._events.publish(batch)
            except AssetflowError as error:
                logger.debug("%d decisions are not announced: %s", len(batch), error)
