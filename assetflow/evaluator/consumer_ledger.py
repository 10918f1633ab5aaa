"""What the registry needs from a ledger, and a ledger in memory that offers just that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Protocol
from uuid import UUID

from assetflow.core import registry
from assetflow.core.consumers import Consumer
from assetflow.core.memory_book import MemoryBook
from assetflow.prefect_io.deployments import Deployed


@dataclass(frozen=True)
class KnownConsumer:
    """A consumer in the ledger, with the text of its declaration and the automation that shows it."""

    consumer: Consumer
    text: str
    automation_id: UUID | None = None


class ConsumerLedger(Protocol):
    """The ledger, as the registry calls it; consumers are named by their id."""

    async def consumers(self) -> Sequence[KnownConsumer]: ...
    async def deploy(self, deployed: Deployed, *, paused: bool) -> Consumer:
        """Raises NameTaken."""
        ...

    async def change(self, consumer: int, deployed: Deployed) -> None:
        """Raises NameTaken."""
        ...

    async def switch(self, consumer: int, *, paused: bool | None = None, held: bool | None = None) -> None: ...
    async def remove(self, consumer: int) -> None: ...
    async def set_automation(self, consumer: int, automation_id: UUID) -> None: ...
    async def set_edges(self, deployed: Deployed) -> None:
        """Keep what a deployment that is no consumer produces and reads."""
        ...

    async def drop_edges(self, deployment_id: UUID) -> None: ...
    async def automations_seen(self) -> datetime | None:
        """The stamp of the newest automation that the consumers follow, and with it all older ones."""
        ...

    async def set_automations_seen(self, stamp: datetime) -> None: ...


class MemoryConsumers:
    """Consumers without a ledger: enough to check what is deployed and to make its automations."""

    def __init__(self) -> None:
        self._book = MemoryBook()
        self._numbers = count(1)
        self._known: dict[int, KnownConsumer] = {}
        self.producers: dict[UUID, Deployed] = {}
        self._automations_seen: datetime | None = None

    async def consumers(self) -> Sequence[KnownConsumer]:
        return list(self._known.values())

    async def deploy(self, deployed: Deployed, *, paused: bool) -> Consumer:
        number = next(self._numbers)
        consumer = Consumer(number, deployed.name, deployed.id, deployed.options, paused, deployed.held)
        registry.deploy(self._book, consumer)
        self._known[number] = KnownConsumer(consumer, deployed.text)
        return consumer

    async def change(self, consumer: int, deployed: Deployed) -> None:
        known = self._known[consumer]
        changed = registry.change(self._book, known.consumer, deployed.options)
        self._known[consumer] = replace(known, consumer=changed, text=deployed.text)

    async def switch(self, consumer: int, *, paused: bool | None = None, held: bool | None = None) -> None:
        known = self._known[consumer]
        switched = registry.switch(self._book, known.consumer, paused=paused, held=held)
        self._known[consumer] = replace(known, consumer=switched)

    async def remove(self, consumer: int) -> None:
        registry.remove(self._book, self._known.pop(consumer).consumer)

    async def set_automation(self, consumer: int, automation_id: UUID) -> None:
        self._known[consumer] = replace(self._known[consumer], automation_id=automation_id)

    async def set_edges(self, deployed: Deployed) -> None:
        self.producers[deployed.id] = deployed

    async def drop_edges(self, deployment_id: UUID) -> None:
        self.producers.pop(deployment_id, None)

    async def automations_seen(self) -> datetime | None:
        return self._automations_seen

    async def set_automations_seen(self, stamp: datetime) -> None:
        self._automations_seen = stamp
