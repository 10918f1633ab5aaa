"""Reports: four flows that run by themselves when what they read was updated; their results are assets too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assetflow import AssetEvent, TriggeringAssetEvents, flow, read, spark_task, triggering_asset_events
from flows import lake
from flows.ingest import read_csv

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@spark_task(inlets=[lake.flights], outlets=[lake.carrier_report_asset])
def summarize_carriers(spark: SparkSession, consumed: list[AssetEvent]) -> DataFrame:
    """Flights, cancellations and mean departure delay of each airline."""
    from pyspark.sql import functions as f

    airlines = read_csv(spark, "airlines.csv", lake.AIRLINES_SCHEMA)
    report = (
        read(lake.flights, spark)
        .groupBy("carrier")
        .agg(
            f.count("*").alias("flights"),
            f.count_if(f.col("dep_time").isNull()).alias("cancelled"),
            f.avg("dep_delay").alias("mean_dep_delay"),
        )
        .join(airlines, "carrier")
    )
    return lake.with_consumed(report, consumed)


@spark_task(inlets=[lake.flights, lake.weather], outlets=[lake.delay_by_weather_asset])
def join_weather(spark: SparkSession, consumed: list[AssetEvent]) -> DataFrame:
    """Mean departure delay by airport and visibility in miles, over the flights whose hour has a weather record."""
    from pyspark.sql import functions as f

    flights = read(lake.flights, spark).select("origin", "time_hour", "dep_delay")
    weather = read(lake.weather, spark).select("origin", "time_hour", "visib")
    report = (
        flights.join(weather, ["origin", "time_hour"])
        .groupBy("origin", f.floor("visib").alias("visibility"))
        .agg(f.count("*").alias("flights"), f.avg("dep_delay").alias("mean_dep_delay"))
    )
    return lake.with_consumed(report, consumed)


@spark_task(inlets=[lake.flights, lake.planes], outlets=[lake.fleet_report_asset])
def summarize_fleet(spark: SparkSession, consumed: list[AssetEvent]) -> DataFrame:
    """Planes, flights and seats flown of each manufacturer, over the flights whose plane is known."""
    from pyspark.sql import functions as f

    planes = read(lake.planes, spark).select("tailnum", "manufacturer", "seats")
    report = (
        read(lake.flights, spark)
        .join(planes, "tailnum")
        .groupBy("manufacturer")
        .agg(f.count_distinct("tailnum").alias("planes"), f.count("*").alias("flights"), f.sum("seats").alias("seats"))
    )
    return lake.with_consumed(report, consumed)


@spark_task(
    inlets=[lake.carrier_report_asset, lake.delay_by_weather_asset, lake.fleet_report_asset],
    outlets=[lake.board_asset],
)
def compose_board(spark: SparkSession, consumed: list[AssetEvent]) -> DataFrame:
    """One line for each report that was updated: how many rows it has and how many flights stand behind it."""
    from functools import reduce

    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    updated = {event.uri: event.asset for event in consumed}
    lines = [
        read(asset, spark).agg(
            f.lit(asset.name).alias("report"), f.count("*").alias("rows"), f.sum("flights").alias("flights")
        )
        for asset in updated.values()
    ]
    return lake.with_consumed(reduce(DataFrame.unionByName, lines), consumed)


@flow(schedule=lake.flights)
def carrier_report(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> None:
    """Runs when the flights were updated."""
    summarize_carriers(triggering_asset_events.all())


@flow(schedule=lake.flights & lake.weather)
def delay_by_weather(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> None:
    """Runs when both the flights and the weather were updated."""
    join_weather(triggering_asset_events.all())


@flow(schedule=lake.flights & lake.planes)
def fleet_report(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> None:
    """Runs when both the flights and the planes were updated."""
    summarize_fleet(triggering_asset_events.all())


@flow(schedule=lake.carrier_report_asset | (lake.delay_by_weather_asset & lake.fleet_report_asset))
def board(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> None:
    """Runs when the carrier report was updated, or both other reports were."""
    compose_board(triggering_asset_events.all())
