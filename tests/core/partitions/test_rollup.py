"""Keys, which of them a roll-up waits for, when it has enough, and which roll-ups can never have enough."""

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
    WaitForAll,
    WeekWindow,
    Window,
    check_key,
)
from assetflow.core.partitions.rollup import policy_from_json
from assetflow.errors import InvalidEvent, InvalidPartition, MappingError


def test_partition_keys() -> None:
    for key in ("us", " us ", "é", "a" * 250, "日" * 191):
        assert check_key(key) == key
    for key in ("", " \t", "a" * 251, "日" * 192, 5, None):
        with pytest.raises(InvalidEvent) as caught:
            check_key(key)
        assert caught.value.rule == "2.5"


@pytest.mark.parametrize(
    ("policy", "received", "awaited", "met"),
    [
        (WaitForAll(), 23, 24, False),
        (WaitForAll(), 24, 24, True),
        (MinimumCount(2), 1, 24, False),
        (MinimumCount(2), 2, 24, True),
        (MinimumCount(5), 3, 3, False),
        (MinimumCount(-3), 20, 24, False),
        (MinimumCount(-3), 21, 24, True),
        (MinimumCount(-30), 0, 24, True),
    ],
)
def test_wait_policies(policy: WaitForAll | MinimumCount, received: int, awaited: int, met: bool) -> None:
    assert policy.is_met(received, awaited) is met
    assert policy_from_json(policy.as_json()) == policy


@pytest.mark.parametrize("n", [0, True, 1.5, "2"])
def test_counts_that_say_nothing(n: int) -> None:
    with pytest.raises(InvalidPartition):
        MinimumCount(n)


@pytest.mark.parametrize("value", ["some", {"max": 1}, {}, None, {"min": 0}])
def test_json_that_is_no_policy(value: object) -> None:
    with pytest.raises(InvalidPartition):
        policy_from_json(value)


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
