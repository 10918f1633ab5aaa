"""Write a DataFrame as the new state of an asset: on a local path completely or not at all, and safe to retry.

On a local path (`file:`), the data is written as a new version beside the dataset (`layout.py`) or its partition
(`partitioned.py`), and becomes visible by one rename of a link. Elsewhere, and in formats with a log of their own,
Spark writes straight to the place: the write is recorded and its rows are counted, but assetflow does not protect it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prefect.context import FlowRunContext, TaskRunContext

from assetflow.authoring.recording import TaskRecording, current_recording, is_outlet_of_a_running_task
from assetflow.authoring.triggering import partition_key as key_of_run
from assetflow.core.partitions import check_key
from assetflow.core.values.assets import Asset, check_data_version
from assetflow.errors import PublishFailed
from assetflow.spark.checking import check_aside, check_staged
from assetflow.spark.data_files import AttemptId, current_attempt, data_files
from assetflow.spark.layout import DatasetLayout
from assetflow.spark.partitioned import PartitionedLayout, check_columns, count_by_key, refuse_partitions, with_key
from assetflow.spark.session import get_session
from assetflow.spark.staging import add_schema, commit, commit_partitions, stage, write_directly
from assetflow.spark.writes import (
    Metrics,
    Mode,
    Published,
    Write,
    asset_path,
    clear_errors,
    place_beside,
    staged_as_parquet,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    if write.data_version is not None:
        check_data_version(write.data_version, where=write.asset.uri)
    if path is None and not urlsplit(write.asset.uri).scheme:
        raise PublishFailed(
            "the asset is a name, not a place that Spark can write to",
            where=write.asset.uri,
            fix="Give it a URI such as file:///lake/orders, or write the data yourself and return None",
        )
    with clear_errors(write):
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
    beside = place_beside(write.asset)
    if write.holds_back and not write.is_staged and beside is not None:
        with _staged_first(write, path, beside, attempt, started) as make_visible:
            yield make_visible
        return
    if path is None or not write.is_staged:
        yield write_directly(write, path, started)
        return
    layout = DatasetLayout(path)
    with ExitStack() as stack:
        with clear_errors(write):
            if write.is_keyed:
                PartitionedLayout(path).check()
            if write.partition_key is not None:
                layout = PartitionedLayout(path).of(write.partition_key)
            if write.mode == "append" and write.partition_column is None:
                # Refuse it before anything is written, or another dataset becomes visible.
                add_schema(write, path, layout.current())
            staging = stack.enter_context(layout.stage(attempt.task_run, attempt.number))
            rows = stage(write, staging, attempt)
            checks = check_staged(write, staging, attempt)
        if write.partition_column is not None:
            yield lambda: replace(commit_partitions(write, path, staging, attempt, started), checks=checks)
        else:
            yield lambda: replace(commit(write, path, layout, staging, attempt, rows, started), checks=checks)


@contextmanager
def _staged_first(
    write: Write, path: Path | None, beside: str, attempt: AttemptId, started: float
) -> Generator[Callable[[], Published]]:
    """Stage and check the data for a place that Spark writes to directly. The value is as that of `_written`."""
    with ExitStack() as stack:
        with clear_errors(write):
            staged = stack.enter_context(staged_as_parquet(write, beside, attempt))
            column = write.partition_column
            rows = {} if column is None else count_by_key(with_key(staged, None, column))
            checks = check_aside(write, staged, rows, attempt)

        def make_visible() -> Published:
            done = write_directly(replace(write, df=staged, checks=()), path, started)()
            keys: dict[str, Metrics] = {key: {"rows": number} for key, number in rows.items()}
            return replace(done, partitions=keys or done.partitions, checks=checks)

        yield make_visible
