"""Measure a write without a second pass over the data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def observe_rows(df: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """Have Spark count the rows of `df` while it writes them.

    Returns:
        The DataFrame to write, once and as the last step, and a function that returns the number of rows. Call it only
        after the write succeeded: it waits for the write.
    """
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observation = Observation()
    observed = df.observe(observation, count(lit(1)).alias("rows"))
    return observed, lambda: int(observation.get.get("rows") or 0)


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The data files under a directory.

    Parameters:
        bytes: the total size of the files.
        files: the number of files.
    """

    bytes: int
    files: int


def measure_folder(folder: Path) -> WrittenFiles:
    """Measure the data files in a directory that Spark wrote, without its markers and checksums."""
    sizes = [file.stat().st_size for file in data_files(folder)]
    return WrittenFiles(bytes=sum(sizes), files=len(sizes))


def parquet_rows(spark: SparkSession, folder: Path) -> int:
    """Return the number of rows in the Parquet files of a directory that Spark wrote, from their footers."""
    import pyarrow.parquet as parquet  # pyright: ignore[reportMissingTypeStubs]

    footer = cast("Callable[[Path], Any]", parquet.read_metadata)  # pyright: ignore[reportUnknownMemberType]
    try:
        return sum(footer(file).num_rows for file in data_files(folder))
    except OSError:
        # Footers can be encrypted; Spark has the keys.
        return spark.read.parquet(f"file:{folder}").count()


def data_files(folder: Path) -> Iterator[Path]:
    """Yield the data files in a directory that Spark wrote, without its markers and checksums."""
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names if not name.startswith(("_", ".")))
