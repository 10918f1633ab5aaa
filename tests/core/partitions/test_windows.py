from __future__ import annotations

from datetime import datetime

import pytest

from assetflow.core.partitions import (
    DayWindow,
    Direction,
    MonthWindow,
    QuarterWindow,
    SegmentWindow,
    TimeWindow,
    WeekWindow,
    Window,
    YearWindow,
    window_from_json,
)
from assetflow.core.partitions.windows import TIME_WINDOWS
from assetflow.errors import InvalidPartition, MappingError


def day(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_leap_month_has_its_29_days() -> None:
    starts = MonthWindow().starts(day("2024-02-01"))
    assert (len(starts), starts[0], starts[-1]) == (29, day("2024-02-01"), day("2024-02-29"))


def test_backward_is_open_at_its_beginning_and_closed_at_its_end() -> None:
    starts = MonthWindow(direction=Direction.BACKWARD).starts(day("2024-03-01"))
    assert (len(starts), starts[0], starts[-1]) == (29, day("2024-02-02"), day("2024-03-01"))
    assert WeekWindow(direction=Direction.BACKWARD).starts(day("2026-03-02"))[0] == day("2026-02-24")
    assert DayWindow(direction=Direction.BACKWARD).starts(day("2026-03-02"))[0] == day("2026-03-01T01:00")


def test_months_cross_the_year() -> None:
    assert QuarterWindow(direction=Direction.BACKWARD).starts(day("2026-01-01"))[0] == day("2025-11-01")
    assert YearWindow().starts(day("2026-07-01"))[-1] == day("2027-06-01")


@pytest.mark.parametrize("window", [MonthWindow(), QuarterWindow(), YearWindow()])
def test_months_start_on_day_one(window: TimeWindow) -> None:
    with pytest.raises(MappingError, match="2026-03-04"):
        window.starts(day("2026-03-04"))


@pytest.mark.parametrize("kind", TIME_WINDOWS)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_json(kind: str, direction: str) -> None:
    window = window_from_json({"kind": kind, "direction": direction})
    assert isinstance(window, TIME_WINDOWS[kind])
    assert window_from_json(window.as_json()) == window
    assert window.describe()


def test_directions_are_named_as_in_airflow() -> None:
    assert WeekWindow(direction=Window.Direction.BACKWARD) == window_from_json(
        {"kind": "week", "direction": "backward"}
    )
    assert window_from_json("week") == WeekWindow() != DayWindow()


def test_segments_count_once() -> None:
    window = SegmentWindow(["us", "eu", "us"])
    assert window.segments == ("us", "eu")
    assert window_from_json(window.as_json()) == window
    assert hash(window) == hash(SegmentWindow(("us", "eu")))


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
