"""Write a DataFrame with Spark beside the dataset and swap it in by one rename, or straight to a place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from assetflow.core.values.events import SCHEMA
from assetflow.crash_points import reach
from assetflow.errors import PublishFailed
from assetflow.spark.checking import check_written
from assetflow.spark.data_files import (
    TABLE,
    AttemptId,
    carry_over,
    folder_version,
    mark_files,
    measure_folder,
    observe_rows,
    parquet_rows,
    table_version,
)
from assetflow.spark.layout import DatasetLayout, Staging, flushed_meanwhile, schema_of, sync_tree
from assetflow.spark.partitioned import (
    KEY_COLUMN,
    PartitionedLayout,
    directory_of,
    folders_by_key,
    refuse_partitions,
    rows_by_key,
    with_key,
)
from assetflow.spark.schemas import SchemaStore, united, with_all_columns
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


def commit(
    write: Write, path: Path, layout: DatasetLayout, staging: Staging, attempt: AttemptId, rows: int, started: float
) -> Published:
    with clear_errors(write):
        measured, versions = _swap(write, path, layout, staging, attempt, write.partition_key)
        if write.partition_key is not None:
            PartitionedLayout(path).show()
    metrics: Metrics = {"rows": rows, **measured, "seconds": round(monotonic() - started, 3)}
    keys = {} if write.partition_key is None else {write.partition_key: metrics}
    return Published(write.asset, str(path), metrics, keys, versions)


def commit_partitions(write: Write, path: Path, staging: Staging, attempt: AttemptId, started: float) -> Published:
    """Make each partition of the staged data visible, one after the other."""
    layout = PartitionedLayout(path)
    keys: dict[str, Metrics] = {}
    versions: dict[str | None, str] = {}
    with clear_errors(write):
        rows = rows_by_key(write.df, staging.data, write.format, write.options, write.partition_column)
        for key, folder in folders_by_key(staging.data).items():
            partition = layout.of(key)
            with partition.stage(attempt.task_run, attempt.number) as own:
                folder.rename(own.data)
                measured, version = _swap(write, path, partition, own, attempt, key)
            versions |= version
            keys[key] = {"rows": rows.get(key, 0), **measured}
        # Without rows too, readers find the dataset and its columns.
        add_schema(write, path)
        layout.show()
    totals: Metrics = {name: sum(each[name] for each in keys.values()) for name in ("rows", "bytes", "files")}
    return Published(write.asset, str(path), totals | {"seconds": round(monotonic() - started, 3)}, keys, versions)


def _swap(
    write: Write, path: Path, layout: DatasetLayout, staging: Staging, attempt: AttemptId, key: str | None
) -> tuple[Metrics, dict[str | None, str]]:
    """Make staged data visible; return what was measured, and the data version by its key if somebody asked for one."""
    measured = measure_folder(staging.data)
    with layout.lock():
        if not write.is_keyed:
            # Another run may have published the first partition since this one began.
            refuse_partitions(layout.path)
        current = layout.current() if write.mode == "append" else None
        if current is not None:
            carry_over(current, staging.data, attempt)
            sync_tree(staging.data)
        schema = add_schema(write, path, current)
        reach("between-staging-and-swap")
        version = layout.commit(staging, schema)
    said = folder_version(version) if write.data_version == TABLE else write.data_version
    return {**measured, SCHEMA: int(schema, 16)}, {} if said is None else {key: said}


def add_schema(write: Write, path: Path, appended_to: Path | None = None) -> str:
    """Store the schema of the new version, and return its id.

    Raises:
        PublishFailed: no schema holds the data that is appended and the data that it is appended to.
    """
    from pyspark.sql.types import StructType

    store = SchemaStore(path)
    columns = [each for each in write.df.schema.fields if not write.is_keyed or each.name.lower() != KEY_COLUMN]
    schemas = {"the new data": StructType(columns)}
    if appended_to is not None:
        reader = write.df.sparkSession.read.format(write.format)
        known = schema_of(appended_to)
        old = store.get(known) if known else with_all_columns(reader, write.options).load(f"file:{appended_to}").schema
        schemas = {"the data that is there": old, **schemas}
    return store.add(united(schemas, PublishFailed, write.format))
