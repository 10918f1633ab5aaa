"""Commits in the log of a Delta table: which change rows, and how many. Contract 10.6."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast

from assetflow.core.watchers.changes import Change

Json = Mapping[str, Any]

# What writers call the numbers of rows: delta-rs first, then Spark.
_METRICS = {
    "rows_added": ("num_added_rows", "num_target_rows_inserted", "numTargetRowsInserted"),
    "rows_updated": ("num_updated_rows", "num_target_rows_updated", "numUpdatedRows", "numTargetRowsUpdated"),
    "rows_deleted": ("num_deleted_rows", "num_target_rows_deleted", "numDeletedRows", "numTargetRowsDeleted"),
}
# The counts without which an operation that rewrites files does not tell how many rows it changed.
_REWRITES = {"MERGE": set(_METRICS), "UPDATE": {"rows_updated"}, "DELETE": {"rows_deleted"}}
_COPIED = ("num_copied_rows", "num_target_rows_copied", "numCopiedRows", "numTargetRowsCopied")
# For Spark, the rows that a MERGE or an UPDATE copies are output too.
_WRITES = ("WRITE", "STREAMING UPDATE", "CREATE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "COPY INTO")


@dataclass
class _Commit:
    info: Json = field(default_factory=dict[str, Any])
    changes_rows: bool = False
    only_adds: bool = True
    records: int | None = 0


def read_commit(version: int, text: bytes) -> Change | None:
    """Return the update that a commit is; `None` if it changes no rows.

    Parameters:
        text: the file of the commit in the log: one JSON object in each line.

    Raises:
        ValueError: it is not a commit.
    """
    commit = _read(json.loads(line) for line in text.splitlines() if line.strip())
    if not commit.changes_rows:
        return None
    operation = str(commit.info.get("operation") or "")
    metrics = cast(Json, commit.info.get("operationMetrics") or {})
    rows = _rows(commit, operation, metrics)
    if _only_copies(operation, rows, metrics):
        return None
    extra = {"version": version, **({"operation": operation} if operation else {}), **rows}
    # A table that was dropped and made anew has the same versions again.
    return Change(f"{version}|{sha256(text).hexdigest()}", extra, None, _moment(commit.info), f"version {version}")


def gap(version: int, table: str) -> Change:
    """Return the update that stands for all versions up to this one that cannot be read. Contract 10.6.

    Parameters:
        table: the id of the table.
    """
    return Change(f"gap|{table}|{version}", {"version": version, "gap": True}, None, None, f"version {version}")


def existing(version: int, table: str) -> Change:
    """Return the update that stands for a table that is there when its watcher is new. Contract 10.4."""
    return Change(f"existing|{table}|{version}", {"version": version}, None, None, f"version {version}")


def _read(actions: Iterable[object]) -> _Commit:
    commit = _Commit()
    for action in actions:
        if not isinstance(action, Mapping):
            raise ValueError("a line of the commit is not a JSON object")
        for kind, value in cast("Mapping[str, Json]", action).items():
            if kind == "commitInfo":
                commit.info = value
            elif kind in ("add", "remove") and value.get("dataChange", True):
                _count(commit, kind, value)
    return commit


def _count(commit: _Commit, kind: str, file: Json) -> None:
    if kind == "remove":
        commit.changes_rows, commit.only_adds = True, False
        return
    records = _records(file)
    commit.changes_rows |= records != 0
    commit.records = None if records is None or commit.records is None else commit.records + records


def _records(file: Json) -> int | None:
    try:
        return int(json.loads(file["stats"])["numRecords"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def _only_copies(operation: str, rows: Mapping[str, int], metrics: Json) -> bool:
    """Return True if an operation wrote files anew and changed none of their rows."""
    counts_all = operation in _REWRITES and _REWRITES[operation] <= rows.keys()
    return counts_all and not any(rows.values()) and any(_number(metrics.get(word)) for word in _COPIED)


def _rows(commit: _Commit, operation: str, metrics: Json) -> dict[str, int]:
    found = {
        name: number
        for name, words in _METRICS.items()
        if (number := next((_number(metrics[word]) for word in words if word in metrics), None)) is not None
    }
    if "rows_added" not in found and operation.startswith(_WRITES) and "numOutputRows" in metrics:
        found["rows_added"] = _number(metrics["numOutputRows"]) or 0
    if not found and commit.only_adds and commit.records is not None:
        found["rows_added"] = commit.records
    return found


def _number(value: object) -> int | None:
    # Spark writes numbers as texts.
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()) else None


def _moment(info: Json) -> datetime | None:
    milliseconds = _number(info.get("timestamp"))
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
