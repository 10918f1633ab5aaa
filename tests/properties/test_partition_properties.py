"""Up and down agree, mappers survive JSON, and no hour falls between two days."""

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assetflow.core.partitions import (
    AllowedKeyMapper,
    ChainMapper,
    Direction,
    FanOutMapper,
    FixedKeyMapper,
    IdentityMapper,
    MinimumCount,
    PartitionMapper,
    ProductMapper,
    RollupMapper,
    SegmentWindow,
    TemporalMapper,
    WaitForAll,
    mapper_from_json,
)
from assetflow.core.partitions.temporal import TEMPORAL_MAPPERS
from assetflow.core.partitions.windows import TIME_WINDOWS
from assetflow.errors import MappingError

ZONES = ("America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu")
INPUTS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%Y%m%d%H%M%S")

zones = st.sampled_from(("UTC", *ZONES))
limits = st.none() | st.integers(1, 5)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8).filter(str.strip)
segments = st.lists(texts, min_size=1, max_size=4).map(SegmentWindow)
policies = st.just(WaitForAll()) | st.integers(-9, 9).filter(bool).map(MinimumCount)
temporals: st.SearchStrategy[TemporalMapper] = st.builds(
    lambda kind, **options: TEMPORAL_MAPPERS[kind](**options),
    st.sampled_from(sorted(TEMPORAL_MAPPERS)),
    timezone=zones,
    input_format=st.sampled_from(INPUTS),
    max_downstream_keys=limits,
)
time_windows = st.builds(
    lambda kind, direction: TIME_WINDOWS[kind](direction=direction),
    st.sampled_from(sorted(TIME_WINDOWS)),
    st.sampled_from(Direction),
)
plain: st.SearchStrategy[PartitionMapper] = st.one_of(
    st.builds(IdentityMapper, max_downstream_keys=limits),
    st.builds(AllowedKeyMapper, st.lists(texts, min_size=1), max_downstream_keys=limits),
    st.builds(FixedKeyMapper, texts, max_downstream_keys=limits),
)
rollups = st.one_of(
    st.builds(RollupMapper, upstream_mapper=temporals, window=time_windows, wait_policy=policies),
    st.builds(RollupMapper, upstream_mapper=plain, window=segments, wait_policy=policies, max_downstream_keys=limits),
)


def combined(members: st.SearchStrategy[PartitionMapper]) -> st.SearchStrategy[PartitionMapper]:
    several = st.lists(members, min_size=2, max_size=3)
    return st.one_of(
        st.builds(lambda m, d: ProductMapper(*m, delimiter=d), several, st.sampled_from(("|", "::"))),
        st.builds(lambda m, n: ChainMapper(*m, max_downstream_keys=n), several, limits),
        st.builds(FanOutMapper, upstream_mapper=members, window=time_windows | segments, downstream_mapper=members),
    )


mappers = st.recursive(st.one_of(plain, temporals, rollups), combined, max_leaves=4)


@given(mappers)
def test_a_mapper_survives_json(mapper: PartitionMapper) -> None:
    again = mapper_from_json(json.loads(json.dumps(mapper.as_json())))
    assert again == mapper
    assert hash(again) == hash(mapper)
    assert again.describe() == mapper.describe()


@pytest.mark.rule("5.1")
@given(mappers, st.text(max_size=20))
def test_a_mapper_maps_or_says_why_not(mapper: PartitionMapper, key: str) -> None:
    try:
        keys = mapper.to_downstream(key)
    except MappingError:
        return
    assert len(set(keys)) == len(keys) >= 1
    assert mapper.fans_out or len(keys) == 1


@pytest.mark.rule("5.2")
@given(
    st.sampled_from(sorted(TIME_WINDOWS)),
    zones,
    st.sampled_from(INPUTS),
    st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_every_awaited_key_leads_to_its_target(kind: str, timezone: str, input_format: str, moment: datetime) -> None:
    mapper = TEMPORAL_MAPPERS[kind](timezone=timezone, input_format=input_format)
    rollup = RollupMapper(upstream_mapper=mapper, window=TIME_WINDOWS[kind]())
    (target,) = rollup.to_downstream(moment.astimezone(ZoneInfo(timezone)).strftime(input_format))
    awaited = rollup.awaited(target)
    assert {rollup.to_downstream(key) for key in awaited} == {(target,)}
    assert rollup.is_met(target, awaited)
    assert rollup.problem() is None
    for missing in sorted(awaited)[:3]:
        assert not rollup.is_met(target, awaited - {missing})
