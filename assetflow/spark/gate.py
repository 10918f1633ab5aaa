"""The gate between the writing of data and its readers: the checks of one write. Contract chapter 12."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from assetflow.authoring.recording import current_recording
from assetflow.spark.checking import Results, check_data, failure_of
from assetflow.spark.data_files import AttemptId
from assetflow.spark.layout import Staging
from assetflow.spark.partitioned import KEY_COLUMN, folders_by_key, with_key
from assetflow.spark.writes import Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_staged(write: Write, staging: Staging, attempt: AttemptId) -> Results:
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
    _hold_back(write, found, attempt, lambda kept: shutil.move(staging.data, kept))
    return found


def check_aside(write: Write, staged: DataFrame, rows: Mapping[str, int], attempt: AttemptId) -> Results:
    """Make the checks of data that is staged as Parquet.

    Parameters:
        rows: the number of rows of each key, if the data is written by the keys in a column.

    Raises:
        CheckFailed: the data has not passed.
    """
    data = with_key(staged, None, write.partition_column) if rows else staged
    found = check_data(write.checks, data, dict.fromkeys(rows) or {None: None})
    found = found if rows else {write.partition_key: found[None]}
    _hold_back(write, found, attempt, lambda kept: staged.write.parquet(f"file:{kept}"))
    return found


def _hold_back(write: Write, found: Results, attempt: AttemptId, keep: Callable[[Path], object]) -> None:
    """Raise the error for staged data that has not passed its checks.

    Parameters:
        keep: puts the data into a folder for people who look at it.
    """
    fix = "Mend the data or the check, and run the task again"
    kept = write.keep_failed and write.keep_failed / f"{attempt.task_run}-{attempt.number}"
    consequence = "nothing of the new data is visible, and the old data stays"
    failed = failure_of(found, consequence, f"{fix}. The new data is in {kept}" if kept else fix)
    if failed is not None:
        _tell(write, found)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            keep(kept)
        raise failed


def check_written(write: Write, target: str) -> Results:
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
        _tell(write, found)
        raise failed
    return found


def _tell(write: Write, found: Results) -> None:
    recording = current_recording()
    if recording is not None:
        recording.held_back(write.asset, found)
