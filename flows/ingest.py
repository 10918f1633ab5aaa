"""Ingest: three flows that fill the lake from the source files, each with one Spark task that updates one asset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assetflow import flow, spark_task
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
