"""Pending partitions: one for each key at a time, and the order of arrival changes no run (contract 5.1 to 5.3)."""

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from assetflow.core.partitions import (
    AllowedKeyMapper,
    DayWindow,
    FanOutMapper,
    FixedKeyMapper,
    IdentityMapper,
    MinimumCount,
    PartitionMapper,
    RollupMapper,
    SegmentWindow,
    StartOfDayMapper,
)
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.errors import MappingError
from tests.core.world import A, B, World, event

HOUR = "%Y-%m-%dT%H"
HOURS = [f"2026-03-{day:02}T{hour:02}" for day in (14, 15) for hour in range(24)]
SEGMENTS = ["us", "eu", "apac"]
IDENTITY = IdentityMapper()
BY_DAY = StartOfDayMapper(input_format=HOUR)
COMPLETE_DAY = RollupMapper(upstream_mapper=BY_DAY, window=DayWindow())
COMPLETE_SET = RollupMapper(upstream_mapper=FixedKeyMapper("all"), window=SegmentWindow(SEGMENTS))

mappers = st.sampled_from(
    (
        IDENTITY,
        BY_DAY,
        COMPLETE_DAY,
        RollupMapper(upstream_mapper=BY_DAY, window=DayWindow(), wait_policy=MinimumCount(2)),
        COMPLETE_SET,
        RollupMapper(
            upstream_mapper=FixedKeyMapper("all"), window=SegmentWindow(SEGMENTS), wait_policy=MinimumCount(-1)
        ),
        AllowedKeyMapper(SEGMENTS),
        FanOutMapper(upstream_mapper=BY_DAY, window=DayWindow()),
    )
)
keys = st.sampled_from([*HOURS[:4], *HOURS[24:28], *SEGMENTS])


@pytest.mark.rule("5.3")
@given(mappers, mappers, st.booleans(), st.lists(st.tuples(st.sampled_from([A, B]), keys), max_size=40))
def test_a_key_has_one_pending_partition_and_an_event_is_in_one_place(
    of_a: PartitionMapper, of_b: PartitionMapper, both: bool, updates: list[tuple[Asset, str]]
) -> None:
    world = World()
    condition = A & B if both else A | B
    config: dict[Any, PartitionMapper] = {A: of_a, B: of_b}
    consumer = world.consumer("c", PartitionedAssetTimetable(assets=condition, partition_mapper_config=config))
    consumed: Counter[tuple[object, str | None]] = Counter()

    for asset, key in updates:
        update = event(asset, partition_key=key)
        decisions = world.happens(update)

        assert len({decision.target_key for decision in decisions}) == len(decisions), (
            "one decision for a key in a pass"
        )
        consumed.update((each.id, decision.target_key) for decision in decisions for each in decision.events)
        pending = list(world.state.queues.target_keys(consumer.id))
        assert len(pending) == len(set(pending))
        assert {decision.target_key for decision in decisions}.isdisjoint(pending), "its run has emptied it"
        queued = Counter(
            (each.id, target) for target in pending for each in world.state.queues.queued(consumer.id, target)
        )
        assert max([*queued.values(), *consumed.values()], default=1) == 1
        assert not queued.keys() & consumed.keys()
        places = {target for number, target in [*queued, *consumed] if number == update.id}
        assert places == _targets(config[asset], key)


def _targets(mapper: PartitionMapper, key: str) -> set[str]:
    try:
        return set(mapper.to_downstream(key))
    except MappingError:
        return set()
