"""Snapshots of Iceberg tables: which change rows, and which are new. Contract 10.6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from assetflow.core.watchers.changes import Change, Found

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
        id: the table's own id; one that is made anew has another.
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
