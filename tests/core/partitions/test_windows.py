"""Windows of keys, and the keys of a range of time."""

from datetime import datetime

import pytest

from assetflow.core.partitions import (
    SegmentWindow,
    window_from_json,
)
from assetflow.core.partitions.ranges import KeySeries, read_period, series_of_keys
from assetflow.core.rules.timers import target_keys_between
from assetflow.core.time.timetables import CronPartitionTimetable
from assetflow.core.values.schedules import Schedule
from assetflow.errors import InvalidPartition


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


@pytest.mark.parametrize("every", ["hour", "day", "week", "month", "year"])
def test_a_range_at_the_end_of_the_calendar_is_refused(every: str) -> None:
    with pytest.raises(InvalidPartition, match="leaves the calendar"):
        read_period("9999-12-31")
    with pytest.raises(InvalidPartition, match="leaves the calendar"):
        KeySeries.every(every).between(datetime(9999, 12, 30), datetime(9999, 12, 31, 23, 59))  # noqa: DTZ001
    with pytest.raises(InvalidPartition, match="leaves the calendar"):
        KeySeries.every(every, timezone="Europe/Berlin").between(datetime(1, 1, 1), datetime(1, 1, 2))  # noqa: DTZ001
