"""What partitioned schedules are made of: mappers of keys, windows, and wait policies.

>>> from assetflow import Asset, PartitionedAssetTimetable, flow
>>> from assetflow.partitions import DayWindow, RollupMapper, StartOfDayMapper
>>> weather = Asset("s3://lake/weather_by_hour")
>>> @flow(schedule=PartitionedAssetTimetable(
...     assets=weather,
...     default_partition_mapper=RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow()),
... ))
... def daily_weather(partition_key: str | None = None): ...

The flow runs once for each day whose 24 hours of weather were updated. Contract chapter 5.
"""

from assetflow.core.partitions import (
    AllKeysMapper,
    AllowedKeyMapper,
    ChainMapper,
    DayWindow,
    FanOutMapper,
    FixedKeyMapper,
    HourWindow,
    IdentityMapper,
    KeysMapper,
    LastMapper,
    MinimumCount,
    MonthWindow,
    PartitionMapper,
    ProductMapper,
    QuarterWindow,
    RollupMapper,
    SegmentWindow,
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
    StartOfQuarterMapper,
    StartOfWeekMapper,
    StartOfYearMapper,
    StaticMapper,
    TimeWindowMapper,
    WaitForAll,
    WaitPolicy,
    WeekWindow,
    Window,
    YearWindow,
)

__all__ = [
    "AllKeysMapper",
    "AllowedKeyMapper",
    "ChainMapper",
    "DayWindow",
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
    "TimeWindowMapper",
    "WaitForAll",
    "WaitPolicy",
    "WeekWindow",
    "Window",
    "YearWindow",
]
