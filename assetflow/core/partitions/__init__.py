"""Partitions: keys, the mappers that turn them into target keys, windows and wait policies (contract chapter 5).

The names and the key formats are those of Airflow 3.3.
"""

from assetflow.core.json_data import MAX_KEY_LENGTH, check_key
from assetflow.core.partitions.base import (
    AllKeysMapper,
    EveryTargetMapper,
    KeysMapper,
    LastMapper,
    PartitionMapper,
    check_mapper,
)
from assetflow.core.partitions.mappers import (
    AllowedKeyMapper,
    ChainMapper,
    FixedKeyMapper,
    IdentityMapper,
    ProductMapper,
    StaticMapper,
)
from assetflow.core.partitions.rollup import FanOutMapper, MinimumCount, RollupMapper, WaitForAll, WaitPolicy
from assetflow.core.partitions.temporal import (
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
    StartOfQuarterMapper,
    StartOfWeekMapper,
    StartOfYearMapper,
    TemporalMapper,
)
from assetflow.core.partitions.time_window import TimeWindowMapper, mapper_from_json
from assetflow.core.partitions.windows import (
    DayWindow,
    Direction,
    HourWindow,
    MonthWindow,
    QuarterWindow,
    SegmentWindow,
    TimeWindow,
    WeekWindow,
    Window,
    YearWindow,
    window_from_json,
)

__all__ = [
    "MAX_KEY_LENGTH",
    "AllKeysMapper",
    "AllowedKeyMapper",
    "ChainMapper",
    "DayWindow",
    "Direction",
    "EveryTargetMapper",
    "FanOutMapper",
    "FixedKeyMapper",
    "HourWindow",
    "IdentityMapper",
    "KeysMapper",
    "LastMapper",
    "MinimumCount",
    "MonthWindow",
    "PartitionMapper",
    "ProductMapper",
    "QuarterWindow",
    "RollupMapper",
    "SegmentWindow",
    "StartOfDayMapper",
    "StartOfHourMapper",
    "StartOfMonthMapper",
    "StartOfQuarterMapper",
    "StartOfWeekMapper",
    "StartOfYearMapper",
    "StaticMapper",
    "TemporalMapper",
    "TimeWindow",
    "TimeWindowMapper",
    "WaitForAll",
    "WaitPolicy",
    "WeekWindow",
    "Window",
    "YearWindow",
    "check_key",
    "check_mapper",
    "mapper_from_json",
    "window_from_json",
]
