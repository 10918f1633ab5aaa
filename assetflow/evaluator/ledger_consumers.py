"""The ledger's consumers, as the registry calls them: each operation in a thread, with the time at which it is made.

Decisions that follow a change are in the ledger; the launcher finds them there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from assetflow.core.consumers import Consumer
from assetflow.evaluator.consumer_ledger import KnownConsumer
from assetflow.ledger import Ledger
from assetflow.prefect_io.deployments import Deployed

AUTOMATIONS = "automations"


class InThread(Protocol):
    """Calls a blocking function without blocking the loop, such as `asyncio.to_thread`."""

    async def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any: ...


class LedgerConsumers:
    """A `ConsumerLedger` on a ledger.

    Parameters:
        in_thread: how the ledger, which blocks, is called.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        in_thread: InThread = asyncio.to_thread,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._reader = ledger.reader
        self._writer = ledger.writer
        self._in_thread = in_thread
        self._now = now

    async def consumers(self) -> Sequence[KnownConsumer]:
        records = await self._in_thread(self._reader.consumers)
        return [KnownConsumer(each.consumer, each.declaration, each.automation_id) for each in records]

    async def deploy(self, deployed: Deployed, *, paused: bool) -> Consumer:
        given = (deployed.name, deployed.id, deployed.flow_id, deployed.text, paused, deployed.held)
        consumer, _ = await self._in_thread(self._writer.deploy, *given, self._now())
        return consumer

    async def change(self, consumer: int, deployed: Deployed) -> None:
        await self._in_thread(self._writer.change, consumer, deployed.text, self._now())

    async def switch(self, consumer: int, *, paused: bool | None = None, held: bool | None = None) -> None:
        await self._in_thread(self._writer.switch, consumer, paused=paused, held=held, now=self._now())

    async def remove(self, consumer: int) -> None:
        await self._in_thread(self._writer.remove, consumer, self._now())

    async def set_automation(self, consumer: int, automation_id: UUID) -> None:
        await self._in_thread(self._writer.set_automation, consumer, automation_id)

    async def set_edges(self, deployed: Deployed) -> None:
        await self._in_thread(self._writer.set_edges, deployed.id, deployed.name, deployed.text, self._now())

    async def drop_edges(self, deployment_id: UUID) -> None:
        await self._in_thread(self._writer.drop_edges, deployment_id)

    async def automations_seen(self) -> datetime | None:
        kept = await self._in_thread(self._reader.cursor, AUTOMATIONS)
        return None if kept is None else datetime.fromisoformat(str(kept))

    async def set_automations_seen(self, stamp: datetime) -> None:
        await self._in_thread(self._writer.set_cursor, AUTOMATIONS, stamp.isoformat())
