"""Which keys a roll-up waits for, when it has enough, and which roll-ups can never have enough."""

from __future__ import annotations

import pytest

from assetflow.core.partitions import (
    AllowedKeyMapper,
    DayWindow,
    Direction,
    FixedKeyMapper,
    IdentityMapper,
    MinimumCount,
    MonthWindow,
    RollupMapper,
    SegmentWindow,
    StartOfDayMapper,
    StartOfMonthMapper,
    StartOfWeekMapper,
    TemporalMapper,
    WeekWindow,
    Window,
)
from assetflow.errors import MappingError

NEW_YORK = "America/New_York"
HOURS_OF_NEW_YORK = StartOfDayMapper(timezone=NEW_YORK, input_format="%Y-%m-%dT%H%z")


@pytest.mark.parametrize(("day", "hours"), [("2026-03-07", 24), ("2026-03-08", 23), ("2026-11-01", 24)])
def test_a_day_on_which_the_clock_changes(day: str, hours: int) -> None:
    rollup = RollupMapper(upstream_mapper=HOURS_OF_NEW_YORK, window=DayWindow())
    awaited = rollup.awaited(day)
    assert len(awaited) == hours
    assert {target for key in awaited for target in rollup.to_downstream(key)} == {day}
    assert rollup.is_met(day, awaited)
    assert not rollup.is_met(day, sorted(awaited)[1:])


def test_of_a_repeated_hour_the_second_is_awaited() -> None:
    awaited = RollupMapper(upstream_mapper=HOURS_OF_NEW_YORK, window=DayWindow()).awaited("2026-11-01")
    assert "2026-11-01T01-0500" in awaited
    assert "2026-11-01T01-0400" not in awaited


@pytest.mark.rule("5.2")
def test_other_keys_do_not_count() -> None:
    rollup = RollupMapper(
        upstream_mapper=FixedKeyMapper("all"), window=SegmentWindow(["us", "eu"]), wait_policy=MinimumCount(2)
    )
    assert not rollup.is_met("all", {"us", "mars", "venus"})
    assert rollup.is_met("all", {"us", "mars", "eu"})


def test_nothing_is_enough_for_a_target_that_cannot_be_read() -> None:
    rollup = RollupMapper(upstream_mapper=StartOfDayMapper(), window=MonthWindow(), wait_policy=MinimumCount(-31))
    with pytest.raises(MappingError):
        rollup.awaited("2026-03-04")
    assert not rollup.is_met("2026-03-04", {"2026-03-04T00:00:00"})
    assert not rollup.is_met("gibberish", {"2026-03-04T00:00:00"})


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


def test_a_policy_can_make_a_partial_window_enough() -> None:
    backward = WeekWindow(direction=Direction.BACKWARD)
    rollup = RollupMapper(upstream_mapper=StartOfWeekMapper(), window=backward, wait_policy=MinimumCount(1))
    assert rollup.problem() is None
    assert RollupMapper(upstream_mapper=HOURS_OF_NEW_YORK, window=DayWindow()).problem() is None


def test_words() -> None:
    rollup = RollupMapper(upstream_mapper=HOURS_OF_NEW_YORK, window=DayWindow())
    assert rollup.describe() == f"the day of the key ({NEW_YORK}), with all of 24 hours from it on"
