"""Measure a write without a second pass over the data."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

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


TABLE = "table"
"""What `publish(data_version=...)` is given for the version of the table itself."""


def folder_version(folder: Path) -> str:
    """Return a hash of the names and sizes of the data files in a directory. No file is read."""
    return _hash(f"{file.relative_to(folder)} {file.stat().st_size}" for file in data_files(folder))


def table_version(spark: SparkSession, target: str, kind: str, folder: str = "") -> str:
    """Return the version of what is at a place that Spark wrote to. No data is read.

    Parameters:
        target: where Spark wrote.
        kind: Spark's name of the format. Delta and Iceberg have snapshots; of others a hash of the file names counts.
        folder: of the files only those in a directory of this name; "" for all.
    """
    if kind == "delta":
        (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{target}`").select("id").collect()
        (newest,) = spark.sql(f"DESCRIBE HISTORY delta.`{target}` LIMIT 1").select("version").collect()
        # A table that was dropped and created again begins at version 0.
        return f"{detail[0]}-{newest[0]}"
    if kind == "iceberg":
        snapshots = spark.read.format(kind).load(f"{target}#snapshots")
        (newest,) = snapshots.orderBy("committed_at", ascending=False).limit(1).select("snapshot_id").collect()
        return str(newest[0])
    files = spark.read.format(kind).load(target).inputFiles()
    return _hash(file for file in files if not folder or f"/{folder}/" in unquote(file))


def _hash(listing: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(listing)).encode()).hexdigest()
