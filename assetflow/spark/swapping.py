"""Make staged data visible: as a new version of the dataset or of its partitions, by one rename of a link each."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

from assetflow.core.values.events import SCHEMA
from assetflow.crash_points import reach
from assetflow.errors import PublishFailed
from assetflow.spark.data_files import TABLE, AttemptId, carry_over, folder_version, measure_folder
from assetflow.spark.layout import DatasetLayout, Staging, schema_of, sync_tree
from assetflow.spark.partitioned import KEY_COLUMN, PartitionedLayout, folders_by_key, refuse_partitions, rows_by_key
from assetflow.spark.schemas import SchemaStore, united, with_all_columns
from assetflow.spark.writes import Metrics, Published, Write, clear_errors


def commit(
    write: Write, path: Path, layout: DatasetLayout, staging: Staging, attempt: AttemptId, rows: int, started: float
) -> Published:
    size = measure_folder(staging.data)
    with clear_errors(write):
        version = _swap(write, path, layout, staging, attempt)
        if write.partition_key is not None:
            PartitionedLayout(path).show()
    measured: Metrics = {"rows": rows, "bytes": size.bytes, "files": size.files, **_schema_of(version)}
    metrics = measured | {"seconds": round(monotonic() - started, 3)}
    keys = {} if write.partition_key is None else {write.partition_key: metrics}
    return Published(write.asset, str(path), metrics, keys, _versions(write, write.partition_key, version))


def commit_partitions(write: Write, path: Path, staging: Staging, attempt: AttemptId, started: float) -> Published:
    """Make each partition of the staged data visible, one after the other."""
    layout = PartitionedLayout(path)
    keys: dict[str, Metrics] = {}
    versions: dict[str | None, str] = {}
    with clear_errors(write):
        rows = rows_by_key(write.df, staging.data, write.format, write.options, write.partition_column)
        for key, folder in folders_by_key(staging.data).items():
            size = measure_folder(folder)
            partition = layout.of(key)
            with partition.stage(attempt.task_run, attempt.number) as own:
                folder.rename(own.data)
                version = _swap(write, path, partition, own, attempt)
            versions |= _versions(write, key, version)
            measured: Metrics = {"rows": rows.get(key, 0), "bytes": size.bytes, "files": size.files}
            keys[key] = {**measured, **_schema_of(version)}
        # Without rows too, readers find the dataset and its columns.
        add_schema(write, path)
        layout.show()
    totals: Metrics = {name: sum(each[name] for each in keys.values()) for name in ("rows", "bytes", "files")}
    return Published(write.asset, str(path), totals | {"seconds": round(monotonic() - started, 3)}, keys, versions)


def _swap(write: Write, path: Path, layout: DatasetLayout, staging: Staging, attempt: AttemptId) -> Path:
    """Make staged data visible, and return its version."""
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
        return layout.commit(staging, schema)


def _versions(write: Write, key: str | None, version: Path) -> dict[str | None, str]:
    """Return the data version by its key; empty if nobody asked for one."""
    said = folder_version(version) if write.data_version == TABLE else write.data_version
    return {} if said is None else {key: said}


def _schema_of(version: Path) -> Metrics:
    """Return the schema's id as a metric."""
    return {SCHEMA: int(schema_of(version), 16)}


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
