"""Partitions: weather by the hour and flights by the day become a report for each day, and the days one for the month.

The source files hold all of 2013; to stay quick, these flows are about three days of January unless they are told a
key. Keys are hours (`2013-01-02T05`) and days (`2013-01-02`) of New York's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assetflow import PartitionedAssetTimetable, flow, partition_key, publish, read, spark_task
from assetflow.partitions import (
    DayWindow,
    MinimumCount,
    MonthWindow,
    RollupMapper,
    StartOfDayMapper,
    StartOfMonthMapper,
)
from assetflow.timetables import PartitionedAtRuntime
from flows import lake
from flows.ingest import read_csv

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAYS = ("2013-01-02", "2013-01-03", "2013-01-04")
# It arrives later than the others: whoever runs `weather-hourly` for this key completes its day.
LATE_HOUR = "2013-01-04T23"

HOURS_OF_THE_DAY = RollupMapper(upstream_mapper=StartOfDayMapper(input_format="%Y-%m-%dT%H"), window=DayWindow())
# Of a month with three days of data, three days are all that will come.
DAYS_OF_THE_MONTH = RollupMapper(
    upstream_mapper=StartOfMonthMapper(input_format="%Y-%m-%d"),
    window=MonthWindow(),
    wait_policy=MinimumCount(len(DAYS)),
)


@spark_task(outlets=[lake.weather_by_hour])
def load_hours(spark: SparkSession) -> DataFrame | None:
    """The weather of the run's hour; of all hours of the three days but the late one, if the run has no key."""
    from pyspark.sql import functions as f

    parts = (f.col(name) for name in ("year", "month", "day", "hour"))
    hour = f.format_string("%04d-%02d-%02dT%02d", *parts)
    rows = read_csv(spark, "weather.csv", lake.WEATHER_SCHEMA).withColumn("of_hour", hour)
    key = partition_key()
    if key is not None:
        return rows.where(rows.of_hour == key)
    wanted = f.substring("of_hour", 1, 10).isin(*DAYS) & (rows.of_hour != LATE_HOUR)
    publish(rows.where(wanted), lake.weather_by_hour, partition_column="of_hour")
    return None


@spark_task(outlets=[lake.flights_by_day])
def load_days(spark: SparkSession) -> DataFrame | None:
    """The flights of the run's day; of each of the three days, if the run has no key."""
    from pyspark.sql import functions as f

    day = f.format_string("%04d-%02d-%02d", f.col("year"), f.col("month"), f.col("day"))
    rows = read_csv(spark, "flights.csv", lake.FLIGHTS_SCHEMA).withColumn("of_day", day)
    key = partition_key()
    if key is not None:
        return rows.where(rows.of_day == key)
    publish(rows.where(rows.of_day.isin(*DAYS)), lake.flights_by_day, partition_column="of_day")
    return None


@spark_task(inlets=[lake.flights_by_day, lake.weather_by_hour], outlets=[lake.delays_by_day])
def join_day(spark: SparkSession) -> DataFrame:
    """Flights and minutes of delay of a day by visibility in miles; of both assets the run reads that day only."""
    from pyspark.sql import functions as f

    flights = read(lake.flights_by_day, spark).select("origin", "time_hour", "dep_delay")
    weather = read(lake.weather_by_hour, spark).select("origin", "time_hour", "visib")
    return (
        flights.join(weather, ["origin", "time_hour"])
        .groupBy(f.floor("visib").alias("visibility"))
        .agg(f.count("*").alias("flights"), f.sum("dep_delay").alias("dep_delay"))
    )


@spark_task(inlets=[lake.delays_by_day], outlets=[lake.month_report])
def sum_up_month(spark: SparkSession) -> DataFrame:
    """Days, flights and minutes of delay of the run's month, over all days that are there."""
    from pyspark.sql import functions as f

    days = read(lake.delays_by_day, spark, all_partitions=True)
    return days.where(days.key.startswith(partition_key() or "")).agg(
        f.count_distinct("key").alias("days"), f.sum("flights").alias("flights"), f.sum("dep_delay").alias("dep_delay")
    )


@flow(schedule=PartitionedAtRuntime())
def weather_hourly() -> None:
    """A key for each hour. Press Run with a key for one hour; without one, all hours of three days but a late one."""
    load_hours()


@flow(schedule=PartitionedAtRuntime())
def flights_daily() -> None:
    """A key for each day. Press Run with a key for one day; without one, three days."""
    load_days()


@flow(
    schedule=PartitionedAssetTimetable(
        assets=lake.flights_by_day & lake.weather_by_hour,
        partition_mapper_config={lake.weather_by_hour: HOURS_OF_THE_DAY},
    )
)
def daily_delays() -> None:
    """Runs for a day when its flights and the weather of all its hours are there."""
    join_day()


@flow(schedule=PartitionedAssetTimetable(assets=lake.delays_by_day, default_partition_mapper=DAYS_OF_THE_MONTH))
def monthly_report() -> None:
    """Runs for a month when three more of its days are there."""
    sum_up_month()
