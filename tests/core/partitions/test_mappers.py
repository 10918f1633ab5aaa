"""Mappers beyond the conformance cases: Airflow's constructors, clock-change days, errors, and JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assetflow.core.partitions import (
    AllowedKeyMapper,
    ChainMapper,
    FanOutMapper,
    FixedKeyMapper,
    IdentityMapper,
    PartitionMapper,
    ProductMapper,
    SegmentWindow,
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfQuarterMapper,
    StartOfWeekMapper,
    TimeWindowMapper,
    WeekWindow,
    mapper_from_json,
)
from assetflow.errors import InvalidPartition, MappingError

NEW_YORK = "America/New_York"


@pytest.mark.rule("5.1")
def test_airflows_constructors() -> None:
    assert AllowedKeyMapper(["us", "eu"]).to_downstream("eu") == ("eu",)
    assert FixedKeyMapper("all").to_downstream("x") == ("all",)
    assert IdentityMapper().to_downstream("x") == ("x",)
    product = ProductMapper(IdentityMapper(), StartOfDayMapper(), delimiter="/", max_downstream_keys=3)
    assert product.to_downstream("us/2026-03-04T05:06:07") == ("us/2026-03-04",)
    chain = ChainMapper(StartOfHourMapper(), StartOfDayMapper(input_format="%Y-%m-%dT%H"))
    assert chain.to_downstream("2026-03-04T05:06:07") == ("2026-03-04",)


def test_a_key_at_a_skipped_time_moves_on_with_the_clock() -> None:
    assert StartOfHourMapper(timezone=NEW_YORK).to_downstream("2026-03-08T02:30:00") == ("2026-03-08T03",)
    assert StartOfHourMapper(timezone=NEW_YORK).to_downstream("2026-11-01T01:30:00") == ("2026-11-01T01",)


def test_both_hours_of_a_repeated_one_stay_apart_if_the_keys_say_so() -> None:
    mapper = StartOfHourMapper(timezone=NEW_YORK, input_format="%Y-%m-%dT%H%z", output_format="%Y-%m-%dT%H%z")
    assert mapper.to_downstream("2026-11-01T05+0000") == ("2026-11-01T01-0400",)
    assert mapper.to_downstream("2026-11-01T06+0000") == ("2026-11-01T01-0500",)


def test_a_day_that_starts_at_one_o_clock_is_still_that_day() -> None:
    mapper = StartOfDayMapper(timezone="America/Sao_Paulo")
    assert mapper.to_downstream("2018-11-04T00:30:00") == ("2018-11-04",)


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


def test_times_that_leave_the_calendar_are_errors_of_mapping() -> None:
    mapper = StartOfDayMapper(timezone="Asia/Tokyo", input_format="%Y-%m-%dT%H%z")
    with pytest.raises(MappingError):
        mapper.to_downstream("9999-12-31T23+0000")
    with pytest.raises(MappingError):
        FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow()).to_downstream("9999-12-31T00:00:00")


@pytest.mark.rule("5.4")
def test_too_many_keys() -> None:
    mapper = FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow(), max_downstream_keys=6)
    with pytest.raises(MappingError, match="7 target keys, the limit is 6"):
        mapper.to_downstream("2026-03-04T00:00:00")
    assert (
        len(
            FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow(), max_downstream_keys=7).to_downstream(
                "2026-03-04T00:00:00"
            )
        )
        == 7
    )
    segments = FanOutMapper(
        upstream_mapper=IdentityMapper(),
        window=SegmentWindow([str(n) for n in range(1001)]),
        downstream_mapper=IdentityMapper(),
    )
    with pytest.raises(MappingError, match="limit is 1000"):
        segments.to_downstream("k")


def test_a_chain_may_fan_out_and_a_product_may_not() -> None:
    week = FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow())
    chain = ChainMapper(week, StartOfDayMapper(input_format="%Y-%m-%d", output_format="d%d"))
    assert chain.fans_out
    assert chain.to_downstream("2026-03-04T00:00:00") == ("d02", "d03", "d04", "d05", "d06", "d07", "d08")
    with pytest.raises(MappingError, match="7 target keys where one is needed"):
        ProductMapper(IdentityMapper(), week).to_downstream("us|2026-03-04T00:00:00")
    with pytest.raises(MappingError, match="where one is needed"):
        FanOutMapper(upstream_mapper=week, window=WeekWindow()).to_downstream("2026-03-04T00:00:00")


def test_equal_target_keys_count_once() -> None:
    mapper = ChainMapper(FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow()), FixedKeyMapper("all"))
    assert mapper.to_downstream("2026-03-04T00:00:00") == ("all",)


def test_fan_out_writes_times_as_iso_without_a_format() -> None:
    mapper = FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow(), downstream_mapper=IdentityMapper())
    assert mapper.to_downstream("2026-03-04T05:06:07")[0] == "2026-03-02T00:00:00"


def test_quarters_are_read_back() -> None:
    mapper = StartOfQuarterMapper(output_format="Q{quarter}/%Y")
    assert mapper.to_downstream("2026-11-04T00:00:00") == ("Q4/2026",)
    assert f"{mapper.read_target('Q4/2026'):%Y-%m-%d}" == "2026-10-01"
    with pytest.raises(MappingError):
        mapper.read_target("Q5/2026")


def test_mappers_are_values() -> None:
    assert StartOfDayMapper() == StartOfDayMapper(output_format="%Y-%m-%d")
    assert StartOfDayMapper() != StartOfHourMapper(output_format="%Y-%m-%d")
    assert len({AllowedKeyMapper(["a"]), AllowedKeyMapper(("a",)), FixedKeyMapper("a")}) == 2


@pytest.mark.parametrize(
    "value",
    [
        "identity",
        {"identity": {"max_downstream_keys": 2}},
        "quarter",
        {"day": {"timezone": NEW_YORK, "input_format": "%Y-%m-%d", "output_format": "d%d", "max_downstream_keys": 1}},
        {"allowed": ["us", "eu"]},
        {"fixed": "k", "max_downstream_keys": 2},
        {"product": ["identity", "day"]},
        {"product": {"mappers": ["identity", "day"], "delimiter": "-"}},
        {"chain": ["hour", {"day": {"input_format": "%Y-%m-%dT%H"}}]},
        {"rollup": {"upstream": "day", "window": "day"}},
        {"rollup": {"upstream": "week", "window": {"kind": "week", "direction": "backward"}, "wait": {"min": -2}}},
        {"rollup": {"upstream": {"fixed": "all"}, "window": {"kind": "segment", "segments": ["us"]}}},
        {"fanout": {"upstream": "week", "window": "week"}},
        {"fanout": {"upstream": "hour", "window": "hour", "downstream": "identity", "max_downstream_keys": 60}},
    ],
)
def test_json_is_written_as_it_was_read(value: Any) -> None:
    mapper = mapper_from_json(value)
    assert mapper.as_json() == value
    assert mapper_from_json(json.loads(json.dumps(mapper.as_json()))) == mapper
    assert mapper.describe()


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


def test_one_mapper_is_no_product() -> None:
    for make in (ProductMapper, ChainMapper):
        with pytest.raises(InvalidPartition):
            make(IdentityMapper())
        with pytest.raises(InvalidPartition):
            make(IdentityMapper(), "day")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({"allowed": []}, "not one of the allowed keys: (none)"),
        ({"product": {"mappers": ["identity", "identity"], "delimiter": ""}}, "empty delimiter"),
    ],
)
def test_what_can_map_nothing_fails_for_each_key(value: Any, word: str) -> None:
    mapper = mapper_from_json(value)
    assert mapper.describe()
    with pytest.raises(MappingError) as caught:
        mapper.to_downstream("us")
    assert word in str(caught.value)


def test_a_fan_out_keeps_the_order_of_its_segments() -> None:
    window = SegmentWindow(["us", "eu", "us", "ap"])
    mapper = FanOutMapper(upstream_mapper=IdentityMapper(), window=window, downstream_mapper=IdentityMapper())
    assert mapper.to_downstream("x") == ("us", "eu", "ap")
    assert mapper_from_json(mapper.as_json()).to_downstream("x") == ("us", "eu", "ap")


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
