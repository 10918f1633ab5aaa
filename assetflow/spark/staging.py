"""Write a DataFrame with Spark: beside the dataset, where nobody sees it yet, or straight to a place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from assetflow.errors import PublishFailed
from assetflow.spark.data_files import TABLE, AttemptId, mark_files, observe_rows, parquet_rows, table_version
from assetflow.spark.gate import check_written
from assetflow.spark.layout import Staging, flushed_meanwhile, sync_tree
from assetflow.spark.partitioned import KEY_COLUMN, directory_of, with_key
from assetflow.spark.writes import Metrics, Published, Write, clear_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Hadoop has a checksum for every 512 bytes, and because of that Spark's files reach the kernel in pieces of 4 KB. With
# larger ones a write takes 5 % less CPU time, and is flushed and removed in half the time. The file system that a
# session keeps at hand has its setting already; what was set there in another way does not count for these writes.
_LARGE_WRITES = {"file.bytes-per-checksum": "65536", "fs.file.impl.disable.cache": "true"}


def write_directly(write: Write, path: Path | None, started: float) -> Callable[[], Published]:
    with clear_errors(write):
        target = write.asset.uri if path is None else f"file:{path}"
        observed, rows = observe_rows(write.df)
        save(write, observed, target, write.mode, key_in_data=write.is_keyed)
        versions = _versions_written(write, target)
        checks = check_written(write, target)
    metrics: Metrics = {"rows": rows(), "seconds": round(monotonic() - started, 3)}
    keys = {} if write.partition_key is None else {write.partition_key: metrics}
    return lambda: Published(write.asset, str(path or write.asset.uri), metrics, keys, versions, checks)


def _versions_written(write: Write, target: str) -> dict[str | None, str]:
    """Return the data version of what Spark wrote straight to a place, by partition key; empty if nobody asked."""
    if write.data_version is None:
        return {}
    version = write.data_version
    if version == TABLE:
        folder = "" if write.partition_key is None else directory_of(write.partition_key)
        version = table_version(write.df.sparkSession, target, write.format, folder)
    return {write.partition_key: version}


def stage(write: Write, staging: Staging, attempt: AttemptId) -> int:
    # Counting rows during the write slows it down; the footers of Parquet files have the number.
    frame, rows = (write.df, None) if write.format == "parquet" else observe_rows(write.df)
    large = replace(write, options={**_LARGE_WRITES, **write.options})
    with flushed_meanwhile(staging.folder):
        save(large, frame, f"file:{staging.data}", "error", key_in_data=write.partition_column is not None)
    if not staging.data.is_dir():
        raise PublishFailed(
            f"Spark wrote {staging.data} on another machine, where this process cannot see it",
            where=write.asset.uri,
            fix="Use a path that Spark and the flow share, or a URI such as s3a://bucket/key",
        )
    mark_files(staging.data, attempt)
    sync_tree(staging.data)
    return parquet_rows(write.df.sparkSession, staging.data) if rows is None else rows()


def save(write: Write, frame: DataFrame, target: str, mode: str, *, key_in_data: bool) -> None:
    columns = tuple(write.partition_by)
    if key_in_data:
        frame, columns = with_key(frame, write.partition_key, write.partition_column), (KEY_COLUMN, *columns)
    writer = frame.write.format(write.format).mode(mode).options(**write.options)
    if columns:
        writer = writer.partitionBy(*columns)
    if key_in_data:
        # Replace only the partitions that are written, whatever the session's setting is.
        writer = writer.option("partitionOverwriteMode", "dynamic")
    writer.save(target)
