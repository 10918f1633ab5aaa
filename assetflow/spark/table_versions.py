"""Find the data version of what was just written: the snapshot of a table, or a hash of the listing of files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from assetflow.spark.measure import data_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        # A table that is made anew begins at version 0 again.
        return f"{detail[0]}-{newest[0]}"
    if kind == "iceberg":
        snapshots = spark.read.format(kind).load(f"{target}#snapshots")
        (newest,) = snapshots.orderBy("committed_at", ascending=False).limit(1).select("snapshot_id").collect()
        return str(newest[0])
    files = spark.read.format(kind).load(target).inputFiles()
    return _hash(file for file in files if not folder or f"/{folder}/" in unquote(file))


def _hash(listing: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(listing)).encode()).hexdigest()
