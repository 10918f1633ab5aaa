"""The flows that `chain` times. Each task notes the time in its first line.

`CHAIN_MARK` makes the assets of a pool its own, and `CHAIN_NOTES` is the file for the notes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import assetflow
from assetflow import Asset, spark_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARK, NOTES = os.environ["CHAIN_MARK"], Path(os.environ["CHAIN_NOTES"])


def note(name: str) -> None:
    """Append the time to the notes."""
    now = time.time()
    with NOTES.open("a") as file:
        file.write(f"{MARK} {name} {now}\n")


@assetflow.task(outlets=[Asset(f"b-{MARK}")])
def write_b() -> None:
    note("b")


@assetflow.task
def read_b() -> None:
    note("c")


@assetflow.task
def read_one() -> None:
    note("one")


@spark_task(outlets=[Asset((NOTES.parent / f"data-{MARK}").as_uri())])
def write_data(spark: SparkSession) -> DataFrame:
    note("data")
    return spark.range(1000).selectExpr("id", "id % 7 AS customer")


@assetflow.flow
def first() -> None:
    """Make `b` from `a`."""
    write_b()


@assetflow.flow
def second() -> None:
    """Read `b`."""
    read_b()


@assetflow.flow
def one() -> None:
    """Read one asset, as one of many flow runs at once."""
    read_one()


@assetflow.flow
def data() -> None:
    """Write a small dataset with Spark."""
    write_data()
