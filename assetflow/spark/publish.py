"""Write a DataFrame as the new state of an asset: on a local path completely or not at all, and safe to retry.

On a local path (`file:`), the data is written as a new version beside the dataset (`layout.py`) or its partition
(`partitioned.py`), and becomes visible by one rename of a link. Elsewhere, and in formats with a log of their own,
Spark writes straight to the place: the write is recorded and its rows are counted, but assetflow does not protect it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

from prefect.context import FlowRunContext, TaskRunContext

from assetflow.authoring.checks import Check
from assetflow.authoring.recording import TaskRecording, current_recording, is_outlet_of_a_running_task
from assetflow.authoring.triggering import partition_key as key_of_run
from assetflow.core.partitions import check_key
from assetflow.core.values.assets import Asset
from assetflow.core.values.checks import CheckResult
from assetflow.core.values.events import SCHEMA
from assetflow.core.values.versions import check_data_version
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, InvalidCheck, PublishFailed
from assetflow.spark.checking import Results, check_data, failure_of
from assetflow.spark.data_files import (
    TABLE,
    AttemptId,
    carry_over,
    current_attempt,
    data_files,
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
    check_columns,
    directory_of,
    folders_by_key,
    refuse_partitions,
    rows_by_key,
    with_key,
)
from assetflow.spark.schemas import SchemaStore, united, with_all_columns
from assetflow.spark.session import get_session
from assetflow.spark.watch import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode = Literal["overwrite", "append"]
Metrics = dict[str, int | float]
# Formats whose datasets are plain directories of files; formats with a log of their own protect themselves.
_FILE_FORMATS = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})

# Hadoop has a checksum for every 512 bytes, and because of that Spark's files reach the kernel in pieces of 4 KB. With
# larger ones a write takes 5 % less CPU time, and is flushed and removed in half the time. The file system that a
# session keeps at hand has its setting already; what was set there in another way does not count for these writes.
_LARGE_WRITES = {"file.bytes-per-checksum": "65536", "fs.file.impl.disable.cache": "true"}


@dataclass(frozen=True, slots=True)
class Published:
    """The result of `publish` or of a `spark_task`; small, and safe to return from a task.

    >>> from assetflow import Asset, flow, spark_task
    >>> @spark_task(outlets=[Asset("file:///lake/orders")])
    ... def load(spark):
    ...     return spark.range(3)
    >>> @flow
    ... def produce() -> int:
    ...     return load().metrics["rows"]

    Attributes:
        asset: the asset.
        path: where readers find the data: the local path, or the URI.
        metrics: `rows` and `seconds` of this write, and on a local path also `bytes`, `files` and `schema`, a number
            that changes with the columns and types.
        partitions: the metrics of each partition key that was written; empty for a dataset without partitions.
        data_versions: the data version of each partition key, under `None` that of a dataset without partitions; empty
            if `publish` was asked for none.
        checks: what the checks found in each partition, under `None` in a dataset without partitions.
    """

    asset: Asset
    path: str
    metrics: Metrics = field(hash=False)
    partitions: Mapping[str, Metrics] = field(default_factory=dict[str, Metrics], hash=False)
    data_versions: Mapping[str | None, str] = field(default_factory=dict["str | None", str], hash=False)
    checks: Results = field(default_factory=dict["str | None", "Sequence[CheckResult]"], hash=False)


@dataclass(frozen=True, slots=True)
class Write:
    """The arguments of one call of `publish`, which explains them."""

    df: DataFrame
    asset: Asset
    mode: Mode = "overwrite"
    format: str = "parquet"
    partition_by: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    partition_key: str | None = None
    partition_column: str | None = None
    data_version: str | None = None
    checks: Sequence[Check] = ()
    keep_failed: Path | None = None

    @property
    def is_staged(self) -> bool:
        """True if the data is written beside the dataset, and becomes visible as a whole."""
        return asset_path(self.asset) is not None and self.format in _FILE_FORMATS

    @property
    def is_keyed(self) -> bool:
        """True if it writes partitions instead of the whole dataset."""
        return self.partition_key is not None or self.partition_column is not None


def asset_path(asset: Asset) -> Path | None:
    """Return the local path of a `file:` URI (percent-decoded) or an absolute path, or `None` for other assets."""
    parts = urlsplit(asset.uri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    if asset.uri.startswith("/") and not asset.uri.startswith("//"):
        return Path(asset.uri)
    return None


def publish(
    df: DataFrame,
    asset: Asset,
    *,
    mode: Mode = "overwrite",
    format: str = "parquet",  # noqa: A002 (Spark's name for it)
    partition_by: str | Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    partition_key: str | None = None,
    partition_column: str | None = None,
    data_version: str | None = None,
) -> Published:
    """Write `df` as the new data of `asset`, or of one of its partitions.

    >>> from pathlib import Path
    >>> from assetflow import Asset, publish, read
    >>> orders = Asset(Path("lake/orders").absolute().as_uri())
    >>> publish(spark.range(3), orders).metrics["rows"]
    3
    >>> read(orders, spark).count()
    3

    On a local path readers see the old data until the new data is complete. A failed or killed task leaves the old data
    whole, and a retry replaces what an earlier attempt published. The path is a link to the current version. The last 3
    versions are kept, so that readers of an older one can finish: `assetflow.read` stays with one version; a plain
    `spark.read` may fail with Spark's file-not-found error, but never mixes versions. The oldest version is deleted
    when the next task begins to write or, with `partition_column`, at its swap. Data that was there before becomes the
    first version. `df` may read from the dataset that it replaces.

    In a run with a partition key, or with `partition_key`, `df` replaces only that partition: the directory `key=<key>`
    of the dataset, which readers see as the column `key`. Each partition is swapped separately, so runs for several
    keys may publish at the same time.

    Inside a task with outlets, the numbers of rows, bytes, files and seconds become the `metrics` of the asset's event.
    The event has the key of the partition that was written; on a local path, each of several keys has its own event.
    With `partition_column` and no rows there is no event. Contract 2.5.

    Parameters:
        df: the data to write. Spark computes it once.
        asset: where to write: a `file:` URI, an absolute path, or any URI for which Spark has a connector. Only local
            paths are protected: elsewhere a failed overwrite may leave no data, and a retried append may write twice.
        mode: "overwrite" makes `df` the whole dataset; "append" adds it. On a local path, retries of one task run
            append once.
        format: Spark's name of the format. Formats with a transaction log of their own (delta, iceberg) are written
            straight to the URI.
        partition_by: columns that become directories (below that of the key).
        options: options of Spark's writer for the format.
        partition_key: the key of the partition to write; by default the key of the run.
        partition_column: instead of one key, the column with the key of each row. The partitions of all these keys are
            replaced; the others stay.
        data_version: the data version of the update: a text, or "table" for that of the written table itself. For Delta
            and Iceberg that is the snapshot, for files a hash of their listing; no data is read for it. By default, the
            version follows from code and inputs, or each update has its own (contract 8.2).

    Returns:
        A `Published`: the asset, its path, and its metrics as a whole and by key.

    Raises:
        InvalidEvent: a key breaks contract 2.5.
        PublishFailed: Spark could not write the data, or the data could not be made visible. On a local path the old
            data is whole. The error names the cause. Also: a thread that the task has started without its context
            publishes.
        OutletError: the running task has outlets, and the asset is not one of them.
        CheckFailed: the data did not pass a check of the task; nothing of it is visible, and the old data is whole.
        InvalidCheck: a check has the severity "error", and the data is not staged (contract 12.4).
    """
    columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    write = Write(df, asset, mode, format, columns, options or {}, partition_key, partition_column, data_version)
    return publish_together([write])[0]


@contextmanager
def staged(
    asset: Asset,
    *,
    mode: Mode = "overwrite",
    format: str = "parquet",  # noqa: A002 (Spark's name for it)
    partition_key: str | None = None,
    partition_column: str | None = None,
) -> Generator[Path]:
    """Give a folder for the new data of `asset` to code that writes files itself; publish it at the end of the block.

    >>> from pathlib import Path
    >>> from assetflow import Asset, read
    >>> from assetflow.checks import staged
    >>> orders = Asset(Path("lake/orders").absolute().as_uri())
    >>> with staged(orders) as place:
    ...     spark.range(3).toPandas().to_parquet(place / "orders.parquet")
    >>> read(orders, spark).count()
    3

    Nobody sees the folder. Spark reads what was written into it and publishes that as `publish` does, with the checks
    of the task, so the data is written twice. Nothing is published if the block raises. Contract 12.2.

    Parameters:
        asset: an asset on a local path.
        mode, partition_key, partition_column: as in `publish`.
        format: Spark's name of the format of the files, and of the dataset.

    Raises:
        PublishFailed: the asset is not on a local path, or the block wrote no files. Else as `publish`.
        CheckFailed: as `publish`.
    """
    path, attempt = asset_path(asset), current_attempt()
    if path is None:
        raise PublishFailed(
            "only data on local and mounted paths is staged",
            where=asset.uri,
            fix="Return a DataFrame, or write the data yourself, without checks",
        )
    with DatasetLayout(path).stage(attempt.task_run, attempt.number) as staging:
        staging.data.mkdir()
        yield staging.data
        if not any(data_files(staging.data)):
            raise PublishFailed(
                "the block of staged() wrote no files", where=asset.uri, fix="Write them into the folder that it gives"
            )
        df = get_session().read.format(format).load(f"file:{staging.data}")
        publish(
            df,
            asset,
            mode=mode,
            format=format,
            partition_key=partition_key,
            partition_column=partition_column,
        )


def publish_together(writes: Sequence[Write]) -> list[Published]:
    """Write several DataFrames, and make those on local paths visible when all are complete, one after the other.

    If a write fails, none of those on local paths becomes visible; elsewhere, each is visible as Spark writes it.

    Raises:
        PublishFailed, OutletError: as `publish` does.
    """
    recording = current_recording()
    attempt = current_attempt()
    writes = [_of_run(write, recording) for write in writes]
    for write in writes:
        _check(write)
        if recording is None:
            _refuse_lost_thread(write.asset)
        else:
            # Refuse it before anything is written, not after.
            recording.measure(write.asset, {})
    with ExitStack() as stack:
        ready = [stack.enter_context(_written(write, attempt)) for write in writes]
        published = [make_visible() for make_visible in ready]
    if recording is not None:
        for write, each in zip(writes, published, strict=True):
            for key, results in each.checks.items():
                recording.checked(each.asset, results, partition_key=key)
            if write.partition_column is not None and not each.metrics["rows"]:
                recording.wrote_no_partition(each.asset)
                continue
            for key, metrics in each.partitions.items() or ((None, each.metrics),):
                recording.measure(each.asset, metrics, partition_key=key)
            for key, version in each.data_versions.items():
                recording.set_version(each.asset, version, partition_key=key)
    return published


def _of_run(write: Write, recording: TaskRecording | None) -> Write:
    """Return a write with what the running task says of it: the key of its run, and the checks of the outlet."""
    key = write.partition_key if write.is_keyed else key_of_run()
    if recording is None:
        return replace(write, partition_key=key)
    checks = recording.checks_of(write.asset)
    return replace(write, partition_key=key, checks=checks, keep_failed=recording.keep_failed)


def _refuse_lost_thread(asset: Asset) -> None:
    """Refuse a thread that a task has started without its context: its run's key and its attempt are not known."""
    known = FlowRunContext.get() or TaskRunContext.get()
    if known is None and is_outlet_of_a_running_task(asset):
        raise PublishFailed(
            "a thread that does not know its task publishes an outlet of that task",
            where=asset.uri,
            fix="Give the thread the task's context: pool.submit(contextvars.copy_context().run, publish, df, asset)",
        )


def _check(write: Write) -> None:
    if write.mode not in ("overwrite", "append"):
        raise PublishFailed(
            f"mode={write.mode!r} is not a mode of publishing", where=write.asset.uri, fix='Use "overwrite" or "append"'
        )
    path = asset_path(write.asset)
    if not write.is_staged and any(each.severity == "error" for each in write.checks):
        raise InvalidCheck(
            f"data in the format {write.format} is not staged, so a check cannot hold it back",
            where=write.asset.uri,
            rule="12.4",
            fix='Publish files, such as Parquet, or write severity="warn"',
        )
    if write.data_version is not None:
        check_data_version(write.data_version, where=write.asset.uri)
    if path is None and not urlsplit(write.asset.uri).scheme:
        raise PublishFailed(
            "the asset is a name, not a place that Spark can write to",
            where=write.asset.uri,
            fix="Give it a URI such as file:///lake/orders, or write the data yourself and return None",
        )
    with _clear_errors(write):
        if write.is_keyed:
            check_columns(write.df.columns, write.partition_key, write.partition_column)
        elif path is not None:
            refuse_partitions(path)
        if write.partition_key is not None:
            check_key(write.partition_key)


@contextmanager
def _written(write: Write, attempt: AttemptId) -> Generator[Callable[[], Published]]:
    """Write the data. The value is a function that makes the data visible and returns the result."""
    path = asset_path(write.asset)
    started = monotonic()
    if path is None or not write.is_staged:
        yield _write_directly(write, path, started)
        return
    layout = DatasetLayout(path)
    with ExitStack() as stack:
        with _clear_errors(write):
            if write.is_keyed:
                PartitionedLayout(path).check()
            if write.partition_key is not None:
                layout = PartitionedLayout(path).of(write.partition_key)
            if write.mode == "append" and write.partition_column is None:
                # Refuse it before anything is written, or another dataset becomes visible.
                _add_schema(write, path, layout.current())
            staging = stack.enter_context(layout.stage(attempt.task_run, attempt.number))
            rows = _stage(write, staging, attempt)
            checks = _check_staged(write, staging, attempt)
        if write.partition_column is not None:
            yield lambda: replace(_commit_partitions(write, path, staging, attempt, started), checks=checks)
        else:
            yield lambda: replace(_commit(write, path, layout, staging, attempt, rows, started), checks=checks)


def _write_directly(write: Write, path: Path | None, started: float) -> Callable[[], Published]:
    with _clear_errors(write):
        target = write.asset.uri if path is None else f"file:{path}"
        observed, rows = observe_rows(write.df)
        _save(write, observed, target, write.mode, key_in_data=write.is_keyed)
        versions = _versions_written(write, target)
        checks = _check_written(write, target)
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


def _stage(write: Write, staging: Staging, attempt: AttemptId) -> int:
    # Counting rows during the write slows it down; the footers of Parquet files have the number.
    frame, rows = (write.df, None) if write.format == "parquet" else observe_rows(write.df)
    large = replace(write, options={**_LARGE_WRITES, **write.options})
    with flushed_meanwhile(staging.folder):
        _save(large, frame, f"file:{staging.data}", "error", key_in_data=write.partition_column is not None)
    if not staging.data.is_dir():
        raise PublishFailed(
            f"Spark wrote {staging.data} on another machine, where this process cannot see it",
            where=write.asset.uri,
            fix="Use a path that Spark and the flow share, or a URI such as s3a://bucket/key",
        )
    mark_files(staging.data, attempt)
    sync_tree(staging.data)
    return parquet_rows(write.df.sparkSession, staging.data) if rows is None else rows()


def _check_staged(write: Write, staging: Staging, attempt: AttemptId) -> Results:
    """Make the checks of data that nobody sees yet.

    Raises:
        CheckFailed: the data has not passed.
    """
    if not write.checks:
        return {}
    by_column = write.partition_column is not None
    columns = with_key(write.df, None, write.partition_column).schema if by_column else write.df.schema
    reader = write.df.sparkSession.read.format(write.format).options(**write.options)
    data = reader.schema(columns).load(f"file:{staging.data}")
    folders: list[tuple[str | None, Path]] = [*folders_by_key(staging.data).items()] if by_column else []
    has_footers = write.format == "parquet"
    parts = {key: folder if has_footers else None for key, folder in folders or [(None, staging.data)]}
    found = check_data(write.checks, data, parts)
    found = found if by_column else {write.partition_key: found[None]}
    fix = "Mend the data or the check, and run the task again"
    kept = write.keep_failed and write.keep_failed / f"{attempt.task_run}-{attempt.number}"
    consequence = "nothing of the new data is visible, and the old data stays"
    failed = failure_of(found, consequence, f"{fix}. The new data is in {kept}" if kept else fix)
    if failed is not None:
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(staging.data, kept)
        raise failed
    return found


def _check_written(write: Write, target: str) -> Results:
    """Make the checks of data that everybody sees.

    Raises:
        CheckFailed: a check could not be made.
    """
    if not write.checks:
        return {}
    data = write.df.sparkSession.read.format(write.format).load(target)
    if write.partition_key is not None:
        data = data.where(data[KEY_COLUMN] == write.partition_key)
    found = {write.partition_key: check_data(write.checks, data, {None: None})[None]}
    failed = failure_of(found, "the new data is written, and no update is recorded", "Mend the check, and run it again")
    if failed is not None:
        raise failed
    return found


def _save(write: Write, frame: DataFrame, target: str, mode: str, *, key_in_data: bool) -> None:
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


def _commit(
    write: Write, path: Path, layout: DatasetLayout, staging: Staging, attempt: AttemptId, rows: int, started: float
) -> Published:
    size = measure_folder(staging.data)
    with _clear_errors(write):
        version = _swap(write, path, layout, staging, attempt)
        if write.partition_key is not None:
            PartitionedLayout(path).show()
    measured: Metrics = {"rows": rows, "bytes": size.bytes, "files": size.files, **_schema_of(version)}
    metrics = measured | {"seconds": round(monotonic() - started, 3)}
    keys = {} if write.partition_key is None else {write.partition_key: metrics}
    return Published(write.asset, str(path), metrics, keys, _versions(write, write.partition_key, version))


def _commit_partitions(write: Write, path: Path, staging: Staging, attempt: AttemptId, started: float) -> Published:
    """Make each partition of the staged data visible, one after the other."""
    layout = PartitionedLayout(path)
    keys: dict[str, Metrics] = {}
    versions: dict[str | None, str] = {}
    with _clear_errors(write):
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
        _add_schema(write, path)
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
        schema = _add_schema(write, path, current)
        reach("between-staging-and-swap")
        return layout.commit(staging, schema)


def _versions(write: Write, key: str | None, version: Path) -> dict[str | None, str]:
    """Return the data version by its key; empty if nobody asked for one."""
    said = folder_version(version) if write.data_version == TABLE else write.data_version
    return {} if said is None else {key: said}


def _schema_of(version: Path) -> Metrics:
    """Return the schema's id as a metric."""
    return {SCHEMA: int(schema_of(version), 16)}


def _add_schema(write: Write, path: Path, appended_to: Path | None = None) -> str:
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


@contextmanager
def _clear_errors(write: Write) -> Generator[None]:
    try:
        yield
    except AssetflowError as error:
        raise error if error.where else error.at(write.asset.uri) from error
    except Exception as error:
        protected = write.is_staged
        kept = "the old data is whole" if protected else "the data is as Spark left it"
        raise PublishFailed(
            f"could not be published ({kept}): {reason_of(error)}",
            where=write.asset.uri,
            fix="Read the cause; a retry is safe" if protected else "Read the cause",
        ) from error
