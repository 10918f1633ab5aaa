"""Commits in the log of a Delta table: which change rows, and how many. Contract 10.6."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast
from uuid import UUID, uuid5

from assetflow.core.json_data import fit_text
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand
from assetflow.core.values.words import shown
from assetflow.core.watchers.intake import CursorStep, RefusedChange, Watched, WatcherIntake
from assetflow.errors import AssetflowError

# The one item of a cursor that is a single value.
CURSOR = "cursor"
_NAMESPACE = UUID("5b8c3a0e-2f35-5f0b-9a55-60c1f2c5d8aa")


@dataclass(frozen=True)
class Change:
    """Something outside that has changed: an update.

    >>> from assetflow.watchers import Change
    >>> class Mails:
    ...     async def watch(self, cursor):
    ...         for number in range((cursor or 0) + 1, 4):
    ...             yield Change(id=str(number), extra={"subject": f"mail {number}"}, cursor=number)

    Contract 10.2, 10.4.

    Attributes:
        id: what tells this change from all others of its source; the same change has the same id whenever it is found.
        extra: the extra of the update.
        partition_key: the partition key of the update.
        occurred: when it happened, with a time zone; `None` for now.
        label: what people call the change: "version 17". By default its id.
        cursor: where the watcher begins after this change, as JSON; `None` for where it began before.
    """

    id: str
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    partition_key: str | None = None
    occurred: datetime | None = None
    label: str = ""
    cursor: object = None


@dataclass(frozen=True)
class Found:
    """The findings of a look.

    Attributes:
        changes: oldest first.
        cursor: where the next look begins, as JSON.
        is_all: False if there is more to be found at once.
    """

    changes: Sequence[Change]
    cursor: object
    is_all: bool = True


def intake_of(found: Found, watched: Watched, source: str, label: str, now: datetime) -> WatcherIntake:
    """Return what becomes of changes: one recording for each, and the cursor.

    Parameters:
        source: what was looked at, without user and password; ids follow from it (contract 10.2).
        label: what people call it: "Delta table s3://lake/orders".
    """
    intake = WatcherIntake(source, cursor=CursorStep(watched.name, {CURSOR: found.cursor}))
    for change in found.changes:
        try:
            events = _events(change, watched, source, label, now)
        except AssetflowError as error:
            intake.refused.append(_refused(change, watched, source, label, error))
            continue
        intake.recordings.append(Recording(_id("change", source, change.id), tuple(events)))
        intake.makers.update({event.id: (watched.name,) for event in events})
    return intake


def _events(change: Change, watched: Watched, source: str, label: str, now: datetime) -> list[AssetEvent]:
    return [
        event_by_hand(
            asset,
            id=_id("update", source, change.id, asset.uri, change.partition_key or ""),
            occurred=change.occurred or now,
            origin=Origin("watcher", by=_by(change, label)),
            extra=change.extra,
            partition_key=change.partition_key,
        )
        for asset in watched.assets
    ]


def _refused(change: Change, watched: Watched, source: str, label: str, error: AssetflowError) -> RefusedChange:
    payload = {"change": _by(change, label), "partition_key": change.partition_key, "extra": dict(change.extra)}
    number = _id("refused", source, change.id, watched.name)
    return RefusedChange(number, payload, shown(error), (watched.name,), error.rule)


def _by(change: Change, label: str) -> str:
    return fit_text(f"{label}, {change.label or change.id}")


def _id(*parts: str) -> UUID:
    return uuid5(_NAMESPACE, fit_text("|".join(parts)))


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
    # A table that was dropped and created again has the same versions again.
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
    """Return True if an operation rewrote files and changed none of their rows."""
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


# Snapshots that are recorded together at most.
AT_ONCE = 100
_COUNTS = {"rows_added": "added-records", "rows_deleted": "deleted-records"}


@dataclass(frozen=True)
class Snapshot:
    """A snapshot, as a table's metadata have it.

    Attributes:
        parent: the id of the snapshot before; `None` for the first.
        milliseconds: when it was made, since 1970.
        summary: what its writer says of it.
    """

    id: int
    parent: int | None
    milliseconds: int
    operation: str
    summary: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def changes_rows(self) -> bool:
        """False for a compaction, and for an append of nothing."""
        if self.operation == "replace":
            return False
        return self.operation != "append" or "total-records" not in self.summary or "added-records" in self.summary


@dataclass(frozen=True)
class Table:
    """A table's metadata.

    Attributes:
        id: the table's own id; one that is created again has another.
        current: the id of the current snapshot; `None` for a table that was never written.
    """

    id: str
    snapshots: Sequence[Snapshot]
    current: int | None


def first(table: Table) -> Found:
    """Return what a new watcher finds. Contract 10.4."""
    if table.current is None:
        return Found((), cursor_at(None))
    return Found((_whole("existing", table, table.current, {}),), cursor_at(table.current))


def since(table: Table, cursor: int | None) -> Found:
    """Return the snapshots after that of the cursor, or one update if some are missing. Contract 10.6.

    Parameters:
        cursor: the id of a snapshot; `None` if the table was not written yet, or was not there.
    """
    if table.current is None or table.current == cursor:
        return Found((), cursor_at(table.current))
    known = {each.id: each for each in table.snapshots}
    new: list[Snapshot] = []
    at: int | None = table.current
    while at is not None and at != cursor and at in known:
        new.append(known[at])
        at = known[at].parent
    if at != cursor:
        return Found((_whole("gap", table, table.current, {"gap": True}),), cursor_at(table.current))
    new = new[::-1][:AT_ONCE]
    changes = [_change(each, table) for each in new if each.changes_rows]
    return Found(changes, cursor_at(new[-1].id), is_all=new[-1].id == table.current)


def cursor_at(snapshot: int | None) -> dict[str, object]:
    """Return the cursor at a snapshot."""
    return {"snapshot": snapshot}


def _whole(why: str, table: Table, current: int, extra: Mapping[str, object]) -> Change:
    """Return the update that stands for all that is in the table now."""
    return Change(f"{why}|{table.id}|{current}", {"version": current, **extra}, None, None, _label(current))


def _change(snapshot: Snapshot, table: Table) -> Change:
    told = {name: snapshot.summary.get(word, "") for name, word in _COUNTS.items()}
    rows = {name: int(number) for name, number in told.items() if number.isdecimal()}
    extra = {"version": snapshot.id, "operation": snapshot.operation, **rows}
    at = datetime.fromtimestamp(snapshot.milliseconds / 1000, UTC)
    return Change(f"{table.id}|{snapshot.id}", extra, None, at, _label(snapshot.id))


def _label(snapshot: int) -> str:
    return f"snapshot {snapshot}"
