"""Ingest: flows that fill the lake from the source files, each with one Spark task that updates one asset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assetflow import flow, spark_task
from assetflow.checks import at_least, no_nulls
from flows import lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_csv(spark: SparkSession, name: str, schema: str) -> DataFrame:
    """A source file with its types; `NA` is null."""
    return spark.read.csv(str(lake.source_file(name)), schema=schema, header=True, nullValue="NA")


@spark_task(outlets=[lake.flights])
def load_flights(spark: SparkSession) -> DataFrame:
    """All flights that left New York in 2013."""
    return read_csv(spark, "flights.csv", lake.FLIGHTS_SCHEMA)


@spark_task(outlets=[lake.weather])
def load_weather(spark: SparkSession) -> DataFrame:
    """Hourly weather at the three airports."""
    return read_csv(spark, "weather.csv", lake.WEATHER_SCHEMA)


@spark_task(outlets=[lake.planes])
def load_planes(spark: SparkSession) -> DataFrame:
    """The planes that flew."""
    return read_csv(spark, "planes.csv", lake.PLANES_SCHEMA)


@spark_task(outlets=[lake.arrivals], checks={lake.arrivals: [at_least(300_000), no_nulls("arr_delay")]})
def load_arrivals(spark: SparkSession) -> DataFrame:
    """The flights that left, taken for those that arrived. Some never did, and so a check holds the data back."""
    found = read_csv(spark, "flights.csv", lake.FLIGHTS_SCHEMA).where("dep_time IS NOT NULL")
    return found.select("time_hour", "carrier", "flight", "origin", "dest", "arr_delay")


@flow
def ingest_flights() -> None:
    """Fill `lake/flights`."""
    load_flights()


@flow
def ingest_weather() -> None:
    """Fill `lake/weather`."""
    load_weather()


@flow
def ingest_planes() -> None:
    """Fill `lake/planes`."""
    load_planes()


@flow
def ingest_arrivals() -> None:
    """Try to fill `lake/arrivals`: the data fails a check, and nobody sees it."""
    load_arrivals()
