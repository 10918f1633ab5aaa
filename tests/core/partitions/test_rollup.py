"""Keys, which of them a roll-up waits for, when it has enough, and which roll-ups can never have enough."""

import pytest

from assetflow.core.partitions import (
    AllowedKeyMapper,
    Direction,
    FixedKeyMapper,
    IdentityMapper,
    MonthWindow,
    RollupMapper,
    SegmentWindow,
    StartOfDayMapper,
    StartOfMonthMapper,
    StartOfWeekMapper,
    TemporalMapper,
    WeekWindow,
    Window,
    check_key,
)
from assetflow.errors import InvalidEvent


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
