"""Make the checks of an asset on data that a task has staged, and hold back what fails. Contract chapter 12.

What the footers of Parquet files tell costs no query. Whatever else counts rows is one query for all checks and
partitions. A function is called once for each partition.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assetflow.authoring.checks import Check
from assetflow.authoring.recording import current_recording
from assetflow.core.json_data import fit_json, fit_number
from assetflow.core.values.addresses import redact
from assetflow.core.values.events import CheckResult
from assetflow.errors import CheckFailed
from assetflow.spark.data_files import AttemptId, FileFacts
from assetflow.spark.layout import Staging
from assetflow.spark.partitioned import KEY_COLUMN, folders_by_key, with_key
from assetflow.spark.watch import reason_of
from assetflow.spark.writes import Results, Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLED = 5
_TOLD = 10
_COLUMNS = 20
_LONGEST = 100

_Counted = Mapping[str | None, int]


def check_data(checks: Sequence[Check], data: DataFrame, folders: Mapping[str | None, Path | None]) -> Results:
    """Return what each check finds in each part of the data.

    Parameters:
        folders: the key of each partition, or `None` for data as a whole; with the Parquet files of it, `None` if they
            are not at hand or of another format.

    Returns:
        The results in the order of the checks by key, under `None` those of the data as a whole.
    """
    facts = {key: folder and FileFacts.of(folder) for key, folder in folders.items()}
    numbers: dict[str, _Counted | Exception] = {}
    for each in checks:
        told = {key: found and each.told(found) for key, found in facts.items()}
        known = {key: number for key, number in told.items() if number is not None}
        if len(known) == len(told):
            numbers[each.name] = known
    counting = [each for each in checks if each.total is not None and each.name not in numbers]
    by_key = None not in folders
    numbers |= _numbers(counting, data, by_key=by_key)
    parts = {key: data.where(data[KEY_COLUMN] == key) if by_key else data for key in folders}
    return {key: [_result(each, part, numbers, key) for each in checks] for key, part in parts.items()}


def _numbers(checks: Sequence[Check], data: DataFrame, *, by_key: bool) -> Mapping[str, _Counted | Exception]:
    """Return what each check counts, by key; the error for a check that Spark cannot make."""
    if not checks:
        return {}
    totals = [each.total().alias(f"{at}") for at, each in enumerate(checks) if each.total is not None]
    try:
        groups = data.groupBy(*([KEY_COLUMN] if by_key else [])).agg(*totals).collect()
    except Exception as error:
        if len(checks) == 1:
            return {checks[0].name: error}
        alone = [_numbers([each], data, by_key=by_key) for each in checks]
        return {name: found for each in alone for name, found in each.items()}
    return {
        each.name: {row[KEY_COLUMN] if by_key else None: row[f"{at}"] for row in groups}
        for at, each in enumerate(checks)
    }


def _result(check: Check, part: DataFrame, numbers: Mapping[str, _Counted | Exception], key: str | None) -> CheckResult:
    try:
        if check.function is not None:
            return _judged(check, check.function(part), part)
        counted = numbers[check.name]
        if isinstance(counted, Exception):
            raise counted
        return _judged(check, counted[key], part)
    except Exception as error:
        return CheckResult(check.name, "error", False, check.wanted, note=f"the check failed: {reason_of(error)}")


def _judged(check: Check, value: Any, part: DataFrame) -> CheckResult:
    """Return the result for the number that was counted, or for what a function returned.

    Raises:
        TypeError: a function returned something else.
    """
    from pyspark.sql import DataFrame

    result = partial(CheckResult, check.name, check.severity, wanted=check.wanted)
    # A DataFrame has an attribute for each column, so it cannot be asked for `item`.
    value = value.item() if type(value).__module__ == "numpy" else value
    bounded = check.least is not None or check.most is not None
    match value:
        case bool():
            return result(value)
        case int() | float() if bounded:
            passed = (check.least is None or value >= check.least) and (check.most is None or value <= check.most)
            broken = part.where(check.breaks()) if check.breaks is not None and not passed else None
            return result(passed, found=fit_number(value), sample=() if broken is None else _sample(broken))
        case list():
            texts = [str(_short(str(each))) for each in cast("list[object]", value)]
            return result(not texts, found=len(texts), note="; ".join(texts[:SAMPLED]))
        case DataFrame():
            sample = _sample(value)
            return result(not sample, found=value.count() if sample else 0, sample=sample)
        case _:
            needs = "a number without at_least and at_most" if isinstance(value, int | float) else repr(value)
            raise TypeError(f"{check.name} returned {needs}, not True, False, a bounded number, a DataFrame or a list")


def _sample(rows: DataFrame) -> tuple[Mapping[str, object], ...]:
    """Return some rows as JSON, without what looks like a secret."""
    taken = [row.asDict(recursive=True) for row in rows.limit(SAMPLED).collect()]
    shown = [{name: _short(value) for name, value in list(row.items())[:_COLUMNS]} for row in taken]
    return tuple(cast("list[Mapping[str, object]]", redact(fit_json(shown))))


def _short(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def failure_of(found: Results, consequence: str, fix: str) -> CheckFailed | None:
    """Return the error for data that a check of the severity "error" has failed; `None` if none has.

    Parameters:
        consequence: what becomes of the data.
    """
    told = [
        f"{result.describe()}{'' if key is None else f' (partition {key})'}"
        for key, results in found.items()
        for result in results
        if not result.passed and result.severity == "error"
    ]
    if not told:
        return None
    more = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    error = CheckFailed(f"the data failed {'; '.join(told[:_TOLD])}{more}: {consequence}", rule="12.2", fix=fix)
    error.results = [result for results in found.values() for result in results]
    return error


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
