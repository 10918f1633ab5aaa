"""The Spark work that `overhead` times; as a program, one flow run in a process of its own.

The same work as a plain Prefect task and as a `spark_task`: a DataFrame of so many rows, written as Parquet.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from prefect import flow, task

from assetflow import Asset, spark_task
from assetflow.spark.session import get_session


def frame(spark: Any, rows: int) -> Any:
    """Some columns of each kind; to compute and write them is the work."""
    return spark.range(rows).selectExpr(
        "id", "id % 1000 AS customer", "rand(8) * 100 AS amount", "sha2(CAST(id AS STRING), 256) AS mark"
    )


@task
def plain(rows: int, place: str) -> None:
    """What somebody writes without assetflow."""
    frame(get_session(), rows).write.mode("overwrite").parquet(place)


def producing(asset: Asset) -> Any:
    """The same with an outlet: published, measured, recorded."""

    @spark_task(outlets=[asset])
    def produce(spark: Any, rows: int) -> Any:
        return frame(spark, rows)

    return produce


@flow
def both(rows: int, rounds: int, folder: str) -> tuple[list[float], list[float]]:
    """Seconds of the plain task and of the `spark_task`, in turn."""
    produce = producing(Asset(f"file://{folder}/ours"))
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        taken[0].append(_seconds(plain, rows, f"{folder}/plain/{number % 2}"))
        taken[1].append(_seconds(produce, rows))
    return taken


def _seconds(run: Callable[..., object], *arguments: object) -> float:
    # What the disk still has to write for the one before must not count for this one.
    os.sync()
    started = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - started


@flow
def once(rows: int, folder: str) -> None:
    """One `spark_task`."""
    producing(Asset(f"file://{folder}/once"))(rows)


if __name__ == "__main__":
    once(int(sys.argv[1]), sys.argv[2])
