"""Whether two mappers can have a target key in common. Contract 11.2."""

from __future__ import annotations

import pytest

from assetflow.core.lint.checking import may_meet
from assetflow.core.partitions import (
    AllowedKeyMapper,
    FixedKeyMapper,
    IdentityMapper,
    PartitionMapper,
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
    StaticMapper,
)

DAYS = StartOfDayMapper()


@pytest.mark.rule("11.2")
@pytest.mark.parametrize(
    ("other", "meets"),
    [
        (StartOfDayMapper(input_format="%Y%m%d"), True),
        (StartOfMonthMapper(output_format="%Y-%m-%d"), True),
        (IdentityMapper(), True),
        (FixedKeyMapper("2026-03-01"), True),
        (AllowedKeyMapper(["eu", "2026-03-01"]), True),
        (StartOfHourMapper(), False),
        (StartOfMonthMapper(), False),
        (FixedKeyMapper("all"), False),
        (StaticMapper({"de": "eu"}), False),
    ],
    ids=lambda value: value.describe() if isinstance(value, PartitionMapper) else "",
)
def test_mappers_meet_unless_neither_can_read_the_others_keys(other: PartitionMapper, meets: bool) -> None:
    assert (may_meet(DAYS, other), may_meet(other, DAYS)) == (meets, meets)
