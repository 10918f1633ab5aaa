"""Consumers in a ring: each waits for two or three neighbouring assets, so that every asset is wanted by two or three.

One round updates every asset once, in a random order, and lets every consumer run once: the work for an event is the
same for any number of consumers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from random import Random
from uuid import UUID, uuid4

from assetflow.core.rules import registry
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AssetAll
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger

BY = Origin("api", by="benchmarks")


def assets(number: int) -> list[Asset]:
    """The assets of the ring."""
    return [Asset(f"s3://lake/ring/{place:06}") for place in range(number)]


def schedules(ring: list[Asset]) -> Iterator[AssetAll]:
    """The conditions, by turns over two and over three neighbours."""
    for place in range(len(ring)):
        members = [ring[(place + step) % len(ring)] for step in range(2 + place % 2)]
        yield AssetAll(*members)


def deploy(ledger: Ledger, ring: list[Asset]) -> None:
    """Let the consumers take part, all in one transaction, and be known as they are after an evaluator's start."""
    now = datetime.now(UTC)
    with ledger.transaction(now) as unit:
        for place, schedule in enumerate(schedules(ring)):
            options = ConsumerOptions(to_schedule(schedule))
            consumer = Consumer(unit.next_consumer(), f"ring/{place:06}", uuid4(), options)
            unit.declare(consumer.id, declaration_to_text(FlowDeclaration(options)))
            registry.deploy(unit.state, consumer)
    ledger.reader.consumers.all()


def recordings(ring: list[Asset], number: int, seed: int = 8) -> list[Recording]:
    """So many recordings of one update each, round after round."""
    random = Random(seed)
    rounds = chain.from_iterable(random.sample(ring, len(ring)) for _ in range(-(-number // len(ring))))
    return [_recording(asset, random) for asset, _ in zip(rounds, range(number), strict=False)]


def _recording(asset: Asset, random: Random) -> Recording:
    number = UUID(int=random.getrandbits(128), version=4)
    extra = {"rows": random.randrange(1_000_000)}
    return Recording(number, (AssetEvent(number, asset, datetime.now(UTC), BY, extra),))
