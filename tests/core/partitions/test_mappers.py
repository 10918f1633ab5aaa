"""Mappers beyond the conformance cases: what is refused, errors, and JSON."""

from dataclasses import replace
from typing import Any

import pytest

from assetflow.core.partitions import (
    AllowedKeyMapper,
    ChainMapper,
    FanOutMapper,
    IdentityMapper,
    PartitionMapper,
    ProductMapper,
    SegmentWindow,
    StartOfDayMapper,
    StartOfWeekMapper,
    TimeWindowMapper,
    WeekWindow,
    Window,
    mapper_from_json,
)
from assetflow.errors import InvalidPartition, MappingError

NEW_YORK = "America/New_York"


def fan_out(upstream: PartitionMapper, window: Window, downstream: PartitionMapper | None = None) -> FanOutMapper:
    return FanOutMapper(upstream_mapper=upstream, window=window, downstream_mapper=downstream)


WITH_ZONE = "%Y-%m-%dT%H%z"
WEEK = fan_out(StartOfWeekMapper(), WeekWindow())


def test_an_error_names_key_format_and_example() -> None:
    with pytest.raises(MappingError) as caught:
        StartOfDayMapper().to_downstream("yesterday")
    for word in ("'yesterday'", "%Y-%m-%dT%H:%M:%S", "2026-03-14T15:09:26"):
        assert word in str(caught.value)
    assert caught.value.rule == "5.4"
    with pytest.raises(MappingError, match="us, eu"):
        AllowedKeyMapper(["us", "eu"]).to_downstream("apac")
    with pytest.raises(MappingError, match="1 parts instead of 2"):
        ProductMapper(IdentityMapper(), IdentityMapper()).to_downstream("us")


WEEK_OF = "2026-03-04T00:00:00"


@pytest.mark.rule("5.4")
@pytest.mark.parametrize(
    ("mapper", "key", "words"),
    [
        (StartOfDayMapper(timezone="Asia/Tokyo", input_format=WITH_ZONE), "9999-12-31T23+0000", "9999-12-31"),
        (WEEK, "9999-12-31T00:00:00", "9999-12-31"),
        (replace(WEEK, max_downstream_keys=6), WEEK_OF, "7 target keys, the limit is 6"),
        (
            fan_out(IdentityMapper(), SegmentWindow([str(n) for n in range(1001)]), IdentityMapper()),
            "k",
            "limit is 1000",
        ),
        (ProductMapper(IdentityMapper(), WEEK), f"us|{WEEK_OF}", "7 target keys where one is needed"),
        (fan_out(WEEK, WeekWindow()), WEEK_OF, "where one is needed"),
    ],
)
def test_what_leads_to_too_many_keys_or_out_of_the_calendar(mapper: PartitionMapper, key: str, words: str) -> None:
    with pytest.raises(MappingError, match=words):
        mapper.to_downstream(key)


@pytest.mark.parametrize(
    "value",
    [
        "decade",
        "allowed",
        {},
        None,
        ["day"],
        {"day": {"time_zone": "UTC"}},
        {"day": {"timezone": "Mars/Base"}},
        {"day": {"input_format": 5}},
        {"day": {}, "hour": {}},
        {"identity": {"max_downstream_keys": 0}},
        {"identity": {}, "max_downstream_keys": True},
        {"allowed": None},
        {"allowed": "us"},
        {"fixed": " "},
        {"fixed": 5},
        {"product": ["identity"]},
        {"product": {"mappers": ["identity", "identity"], "delimiter": 5}},
        {"chain": "identity"},
        {"chain": ["day", "decade"]},
        {"rollup": {"upstream": "day"}},
        {"rollup": {"upstream": "identity", "window": "day"}},
        {"rollup": {"upstream": {"chain": ["hour", "day"]}, "window": "day"}},
        {"rollup": {"upstream": "day", "window": {"kind": "segment", "segments": ["us"]}}},
        {"rollup": {"upstream": "day", "window": "day", "wait": {"min": 0}}},
        {"fanout": {"upstream": "hour", "window": "hour"}},
        {"fanout": {"upstream": "identity", "window": {"kind": "segment", "segments": ["us"]}}},
        {"week": {"output_format": "%Y%m%d%m"}},
        {"quarter": {"output_format": "%Y{}"}},
    ],
)
def test_refused_when_it_is_made(value: Any) -> None:
    with pytest.raises(InvalidPartition):
        mapper_from_json(value)


def test_users_can_write_a_mapper() -> None:
    class Upper(PartitionMapper):
        def map_key(self, key: str) -> list[str]:
            return [key.upper()]

        def describe(self) -> str:
            return "the key in capitals"

        def as_json(self) -> object:
            return "upper"

    assert ChainMapper(Upper(), AllowedKeyMapper(["US"])).to_downstream("us") == ("US",)


@pytest.mark.parametrize("timezone", ["UTC", "Europe/Berlin", "America/Los_Angeles", "Pacific/Kiritimati"])
@pytest.mark.parametrize("key", ["0001-01-01", "9999-12-31"])
def test_rule_5_4_a_key_whose_window_leaves_the_calendar_cannot_be_mapped(timezone: str, key: str) -> None:
    mapper = TimeWindowMapper("day", "week", start_offset=-1, end_offset=1, timezone=timezone)
    with pytest.raises(MappingError, match="leaves the calendar"):
        mapper.to_downstream(key)
    with pytest.raises(MappingError, match="leaves the calendar"):
        TimeWindowMapper("day", "day", start_offset=-1, end_offset=1, timezone=timezone).awaited(key)


def test_rule_8_3_the_first_key_is_one_that_the_zone_has() -> None:
    with pytest.raises(InvalidPartition, match="not a key of this mapper"):
        TimeWindowMapper("day", "day", timezone="Europe/Berlin", first="0001-01-01")
