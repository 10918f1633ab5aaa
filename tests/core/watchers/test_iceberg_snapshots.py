"""Snapshots of Iceberg tables: which are new, and which change rows (10.6)."""

from __future__ import annotations

import pytest

from assetflow.core.watchers.table_changes import AT_ONCE, Snapshot, Table, first, since


def line(*operations: str, current: int | None = None) -> Table:
    """A table whose snapshots 1, 2, … follow each other."""
    snapshots = [Snapshot(n, n - 1 or None, 0, each) for n, each in enumerate(operations, 1)]
    return Table("t", snapshots, current or len(snapshots))


def versions(table: Table, cursor: int | None) -> list[object]:
    return [each.extra["version"] for each in since(table, cursor).changes]


def test_rule_10_6_a_compaction_is_no_update() -> None:
    table = line("append", "replace", "overwrite", "delete")
    assert versions(table, None) == [1, 3, 4]
    assert versions(table, 3) == [4]
    assert since(table, 1).cursor == {"snapshot": 4}


@pytest.mark.parametrize(
    ("summary", "changes"),
    [({"total-records": "3"}, False), ({"total-records": "3", "added-records": "1"}, True), ({}, True)],
)
def test_rule_10_6_an_append_of_nothing_is_no_update(summary: dict[str, str], changes: bool) -> None:
    assert Snapshot(1, None, 0, "append", summary).changes_rows is changes


def test_rule_10_6_a_rollback_is_an_update_with_a_gap() -> None:
    (change,) = since(line("append", "append", "append", current=1), 3).changes
    assert change.extra == {"version": 1, "gap": True}


def test_rule_10_4_what_is_there_when_the_watcher_is_new() -> None:
    assert [each.extra for each in first(line("append", "append")).changes] == [{"version": 2}]
    empty = Table("t", [], None)
    assert first(empty).cursor == since(empty, None).cursor == {"snapshot": None}


def test_many_snapshots_are_recorded_in_parts() -> None:
    table = line(*["append"] * (AT_ONCE + 5))
    found = since(table, None)
    assert (len(found.changes), found.is_all, found.cursor) == (AT_ONCE, False, {"snapshot": AT_ONCE})
    rest = since(table, AT_ONCE)
    assert (len(rest.changes), rest.is_all) == (5, True)
