"""Keys, mappers, windows and roll-ups beyond the conformance cases: what is refused, errors, and ranges of time."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from assetflow.core.partitions import (
    AllowedKeyMapper,
    ChainMapper,
    Direction,
    FanOutMapper,
    FixedKeyMapper,
    IdentityMapper,
    MonthWindow,
    PartitionMapper,
    ProductMapper,
    RollupMapper,
    SegmentWindow,
    StartOfDayMapper,
    StartOfMonthMapper,
    StartOfWeekMapper,
    TemporalMapper,
    TimeWindowMapper,
    WeekWindow,
    Window,
    check_key,
    mapper_from_json,
    window_from_json,
)
from assetflow.core.partitions.ranges import KeySeries, read_period, series_of_keys
from assetflow.core.rules.timers import target_keys_between
from assetflow.core.time.timetables import CronPartitionTimetable
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import Schedule
from assetflow.errors import InvalidEvent, InvalidPartition, MappingError

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
        {},
        None,
        {"day": {"time_zone": "UTC"}},
        {"day": {"timezone": "Mars/Base"}},
        {"day": {"input_format": 5}},
        {"identity": {"max_downstream_keys": 0}},
        {"allowed": "us"},
        {"fixed": " "},
        {"product": ["identity"]},
        {"rollup": {"upstream": "day"}},
        {"rollup": {"upstream": {"chain": ["hour", "day"]}, "window": "day"}},
        {"rollup": {"upstream": "day", "window": {"kind": "segment", "segments": ["us"]}}},
        {"rollup": {"upstream": "day", "window": "day", "wait": {"min": 0}}},
        {"fanout": {"upstream": "hour", "window": "hour"}},
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


def test_partition_keys() -> None:
    for key in ("us", " us ", "é", "a" * 250, "日" * 191):
        assert check_key(key) == key
    for key in ("", " \t", "a" * 251, "日" * 192, 5, None):
        with pytest.raises(InvalidEvent) as caught:
            check_key(key)
        assert caught.value.rule == "2.5"


@pytest.mark.parametrize(
    ("mapper", "window"),
    [
        (StartOfDayMapper(), WeekWindow()),
        (StartOfDayMapper(), MonthWindow()),
        (StartOfWeekMapper(), WeekWindow(direction=Direction.BACKWARD)),
        (StartOfWeekMapper(output_format="%G-W%V"), WeekWindow()),
        (StartOfMonthMapper(output_format="%m"), MonthWindow()),
    ],
)
def test_roll_ups_that_can_never_be_complete(mapper: TemporalMapper, window: Window) -> None:
    problem = RollupMapper(upstream_mapper=mapper, window=window).problem()
    assert problem is not None
    assert mapper.input_format in problem
    assert mapper.output_format in problem


def test_segments_must_lead_to_one_target() -> None:
    segments = SegmentWindow(["us", "eu"])
    problem = RollupMapper(upstream_mapper=IdentityMapper(), window=segments).problem()
    assert problem is not None
    assert "us" in problem
    assert RollupMapper(upstream_mapper=FixedKeyMapper("all"), window=segments).problem() is None
    assert RollupMapper(upstream_mapper=AllowedKeyMapper(["mars"]), window=segments).problem() is not None


def day(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("segments", [[], "us", [""], [1], None])
def test_segments_that_cannot_be(segments: list[str]) -> None:
    with pytest.raises(InvalidPartition):
        SegmentWindow(segments)


@pytest.mark.parametrize(
    "value", ["decade", {}, {"kind": "day", "direction": "up"}, {"kind": "segment"}, {"kind": "day", "size": 2}, 5]
)
def test_json_that_is_no_window(value: object) -> None:
    with pytest.raises(InvalidPartition):
        window_from_json(value)


def keys(every: str, start: str, end: str, **options: str) -> list[str]:
    return list(KeySeries.every(every, **options).between(read_period(start)[0], read_period(end)[1]))


def test_each_period_begins_in_the_range() -> None:
    assert keys("day", "2026-02-27", "2026-03-01") == ["2026-02-27", "2026-02-28", "2026-03-01"]
    assert keys("week", "2026-03-01", "2026-03-16") == ["2026-03-02 (W10)", "2026-03-09 (W11)", "2026-03-16 (W12)"]
    assert keys("month", "2025-12", "2026-01") == ["2025-12", "2026-01"]
    assert keys("quarter", "2026", "2026") == ["2026-Q1", "2026-Q2", "2026-Q3", "2026-Q4"]
    assert len(keys("day", "2024", "2024")) == 366
    assert keys("hour", "2026-01-01T22:30", "2026-01-01T23:30") == ["2026-01-01T23"]


@pytest.mark.parametrize(
    ("known", "every"),
    [
        (["2026-01-01T05", "2026-01-02T00"], "hour"),
        (["2026-01-01T00:00:00", "2026-01-02T00:00:00"], "day"),
        (["2026-01-01"], "day"),
        (["2026-01"], "month"),
        (["2026-01-01", "us"], None),
        ([], None),
    ],
)
def test_known_keys_tell_their_series(known: list[str], every: str | None) -> None:
    found = series_of_keys(known)
    assert (found and found.writer.kind) == every


def test_a_cron_tells_its_keys_whatever_its_offset() -> None:
    timetable = CronPartitionTimetable("0 6 * * 1-5", key_format="%Y-%m-%d", run_offset=-1)
    start, end = read_period("2026-11-20")[0], read_period("2026-11-23")[1]
    found = target_keys_between(Schedule(timetable=timetable), start, end, tuple)
    assert found == ("2026-11-20", "2026-11-23")


def test_a_mapper_that_is_given_for_a_name_tells_the_keys_of_the_asset_with_that_name() -> None:
    mappers = {Asset.ref(name="hits"): StartOfDayMapper()}
    hits = PartitionedAssetTimetable(assets=Asset("s3://lake/hits", name="hits"), partition_mapper_config=mappers)
    start, end = read_period("2026-11-20")[0], read_period("2026-11-21")[1]
    assert target_keys_between(to_schedule(hits), start, end, tuple) == ("2026-11-20", "2026-11-21")


@pytest.mark.parametrize("every", ["hour", "day", "week", "month", "year"])
def test_a_range_at_the_end_of_the_calendar_is_refused(every: str) -> None:
    with pytest.raises(InvalidPartition, match="leaves the calendar"):
        read_period("9999-12-31")
    with pytest.raises(InvalidPartition, match="leaves the calendar"):
        KeySeries.every(every).between(datetime(9999, 12, 30), datetime(9999, 12, 31, 23, 59))  # noqa: DTZ001
    with pytest.raises(InvalidPartition, match="leaves the calendar"):
        KeySeries.every(every, timezone="Europe/Berlin").between(datetime(1, 1, 1), datetime(1, 1, 2))  # noqa: DTZ001


def test_an_endless_range_is_refused() -> None:
    with pytest.raises(InvalidPartition, match="100000"):
        keys("hour", "1900", "2100")
