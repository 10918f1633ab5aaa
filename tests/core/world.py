"""A small world for tests of the fold: a state, consumers, and recordings with as few words as possible."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from assetflow.core.rules.fold import record_and_pass
from assetflow.core.rules.registry import deploy
from assetflow.core.rules.state import State
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPACE = UUID(int=7)

A, B, C = Asset("s3://b/a"), Asset("s3://b/b"), Asset("s3://b/c")


def new_id(*parts: object) -> UUID:
    return uuid5(SPACE, repr(parts))


class World:
    """A state in memory; recordings get numbers of their own."""

    def __init__(self) -> None:
        self.state = State()
        self.count = 0

    def consumer(
        self, name: str, schedule: Any, *, paused: bool = False, held: bool = False, **options: Any
    ) -> Consumer:
        number = len(self.state.consumers.live()) + 1
        settings = ConsumerOptions(to_schedule(schedule), **options)
        consumer = Consumer(number, name, new_id(name), settings, paused, held)
        deploy(self.state, consumer)
        return consumer

    def recording(self, *updates: Asset | AssetEvent, recording: UUID | None = None) -> Recording:
        self.count += 1
        events = [
            update if isinstance(update, AssetEvent) else event(update, id=new_id(self.count, place))
            for place, update in enumerate(updates)
        ]
        return Recording(recording or new_id("recording", self.count), tuple(events))

    def happens(self, *updates: Asset | AssetEvent, recording: UUID | None = None) -> list[Decision]:
        return record_and_pass(self.state, self.recording(*updates, recording=recording), NOW)[1]


_LAST = [0]


def event(asset: Asset, **given: Any) -> AssetEvent:
    if "id" not in given:
        _LAST[0] += 1
        given["id"] = new_id("event", _LAST[0])
    return AssetEvent(**({"asset": asset, "occurred": NOW, "origin": Origin("api")} | given))
