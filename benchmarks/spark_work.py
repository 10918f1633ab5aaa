"""The Spark work that `overhead` times; as a program, one flow run in a process of its own.

The same work as a plain Prefect task and as a `spark_task`: a DataFrame of so many rows, written as Parquet.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from itertools import cycle, permutations
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


@task
def keeping(rows: int, place: str, number: int) -> None:
    """What somebody writes who keeps three versions, so that nobody reads half of one."""
    frame(get_session(), rows).write.parquet(f"{place}/{number}")
    shutil.rmtree(f"{place}/{number - 3}", ignore_errors=True)


def producing(asset: Asset) -> Any:
    """The same with an outlet: published, measured, recorded."""

    @spark_task(outlets=[asset])
    def produce(spark: Any, rows: int) -> Any:
        return frame(spark, rows)

    return produce


@flow
def in_turn(rows: int, rounds: int, folder: str) -> Mapping[str, list[float]]:
    """Seconds of each task, by its name; who is first changes from round to round.

    What comes after the plain task finds a disk that has just been busy with what that one left in memory.
    """
    produce = producing(Asset(f"file://{folder}/ours"))
    works: Mapping[str, Callable[[int], object]] = {
        "plain": lambda number: plain(rows, f"{folder}/plain/{number % 2}"),
        "keeping": lambda number: keeping(rows, f"{folder}/keeping", number),
        "spark_task": lambda _: produce(rows),
    }
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number, order in zip(range(rounds), cycle(permutations(works)), strict=False):
        for name in order:
            taken[name].append(_seconds(works[name], number))
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
