"""Consumers in memory, for tests of the registry without a ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from uuid import UUID

from assetflow.core.freshness import deploying as freshness
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.core.rules import registry
from assetflow.core.rules.state import State
from assetflow.core.values.consumers import Consumer
from assetflow.core.wire.deployments import Deployed, RefusedDeployment
from assetflow.evaluator.ports import KnownConsumer


class MemoryConsumers:
    """Consumers in memory: enough to check deployments and to make their automations."""

    def __init__(self) -> None:
        self._state = State()
        self._numbers = count(1)
        self._known: dict[int, KnownConsumer] = {}
        self.producers: dict[UUID, Deployed] = {}
        self._automations_seen: datetime | None = None
        self.refused: Sequence[RefusedDeployment] = ()
        self.notes: Mapping[str, str] = {}

    async def consumers(self) -> Sequence[KnownConsumer]:
        return list(self._known.values())

    async def deploy(self, deployed: Deployed, *, paused: bool) -> Consumer:
        number = next(self._numbers)
        consumer = Consumer(number, deployed.name, deployed.id, deployed.options, paused, deployed.held)
        registry.deploy(self._state, consumer)
        # Nothing is decided here, so any instant does.
        freshness.follow(self._state.freshness, None, consumer, deployed.updated)
        self._known[number] = KnownConsumer(consumer, deployed.text)
        return consumer

    async def change(self, consumer: int, deployed: Deployed) -> None:
        known = self._known[consumer]
        changed = registry.change(self._state, known.consumer, deployed.options)
        freshness.follow(self._state.freshness, known.consumer, changed, deployed.updated)
        self._known[consumer] = replace(known, consumer=changed, text=deployed.text)

    async def switch(self, consumer: int, *, paused: bool | None = None, held: bool | None = None) -> None:
        known = self._known[consumer]
        switched = registry.switch(self._state, known.consumer, paused=paused, held=held)
        self._known[consumer] = replace(known, consumer=switched)

    async def remove(self, consumer: int) -> None:
        registry.remove(self._state, self._known.pop(consumer).consumer)
        self._state.freshness.remove(consumer)

    async def set_automation(self, consumer: int, automation_id: UUID | None) -> None:
        self._known[consumer] = replace(self._known[consumer], automation_id=automation_id)

    async def set_edges(self, deployed: Deployed) -> None:
        self.producers[deployed.id] = deployed

    async def drop_edges(self, deployment_id: UUID) -> None:
        self.producers.pop(deployment_id, None)

    async def without_schedule(self) -> Mapping[UUID, tuple[str, str]]:
        return {number: (each.name, each.text) for number, each in self.producers.items()}

    async def freshness(self) -> Sequence[AssetFreshness]:
        return ()

    async def automations_seen(self) -> datetime | None:
        return self._automations_seen

    async def set_automations_seen(self, stamp: datetime) -> None:
        self._automations_seen = stamp

    async def set_refused(self, refused: Sequence[RefusedDeployment]) -> None:
        self.refused = refused

    async def set_notes(self, notes: Mapping[str, str]) -> None:
        self.notes = notes
