"""Commits of Delta tables and snapshots of Iceberg tables: which change rows, and what they say of it (10.6)."""

import json

import pytest

from assetflow.core.watchers.table_changes import AT_ONCE, Snapshot, Table, first, read_commit, since


def commit(*actions: object) -> bytes:
    return "\n".join(map(json.dumps, actions)).encode()


def info(operation: str, **metrics: object) -> dict[str, object]:
    return {"commitInfo": {"operation": operation, "timestamp": 1_767_225_600_000, "operationMetrics": metrics}}


def add(records: int | None = 1, *, changes: bool = True) -> dict[str, object]:
    stats = {} if records is None else {"stats": json.dumps({"numRecords": records})}
    return {"add": {"path": "a", "dataChange": changes, **stats}}


REMOVE = {"remove": {"path": "b", "dataChange": True}}

# As Spark writes them: numbers are texts.
SPARK: list[tuple[bytes, dict[str, object]]] = [
    (commit(info("WRITE", numFiles="1", numOutputRows="3", numOutputBytes="700"), add(3)), {"rows_added": 3}),
    (commit(info("STREAMING UPDATE", numOutputRows="5"), add(5)), {"rows_added": 5}),
    (commit(info("DELETE", numDeletedRows="2", numCopiedRows="7"), add(7), REMOVE), {"rows_deleted": 2}),
    (commit(info("UPDATE", numUpdatedRows="4", numCopiedRows="1"), add(5), REMOVE), {"rows_updated": 4}),
    (
        commit(
            info(
                "MERGE",
                numOutputRows="9",
                numTargetRowsInserted="2",
                numTargetRowsUpdated="3",
                numTargetRowsDeleted="0",
                numTargetRowsCopied="4",
            ),
            add(9),
            REMOVE,
        ),
        {"rows_added": 2, "rows_updated": 3, "rows_deleted": 0},
    ),
]


@pytest.mark.parametrize(("text", "rows"), SPARK)
def test_the_rows_that_spark_counts(text: bytes, rows: dict[str, object]) -> None:
    change = read_commit(7, text)
    assert change is not None
    assert {name: value for name, value in change.extra.items() if name.startswith("rows")} == rows
    assert change.extra["version"] == 7
    assert change.occurred is not None
    assert change.occurred.isoformat() == "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    "text",
    [
        commit(info("OPTIMIZE"), add(3, changes=False), {"remove": {"path": "b", "dataChange": False}}),
        commit(info("VACUUM END")),
        commit(info("SET TBLPROPERTIES"), {"metaData": {"id": "x"}}),
        commit(info("CREATE TABLE"), {"protocol": {}}, {"metaData": {"id": "x"}}),
        commit(info("WRITE", numOutputRows="0"), add(0)),
        commit(
            info(
                "MERGE",
                numTargetRowsCopied="9",
                numTargetRowsInserted="0",
                numTargetRowsUpdated="0",
                numTargetRowsDeleted="0",
            ),
            add(9),
            REMOVE,
        ),
        commit(info("UPDATE", numCopiedRows="9", numUpdatedRows="0"), add(9), REMOVE),
        commit(info("DELETE", num_copied_rows=9, num_deleted_rows=0), add(9), REMOVE),
    ],
)
def test_rule_10_6_versions_that_change_no_rows_are_no_updates(text: bytes) -> None:
    assert read_commit(1, text) is None


@pytest.mark.parametrize(
    "text",
    [
        # A partition that is deleted as a whole may not be counted.
        commit(info("DELETE", numRemovedFiles="1"), REMOVE),
        commit(info("DELETE", num_deleted_rows=0, num_copied_rows=0), REMOVE),
        commit(info("MERGE", numTargetRowsCopied="9", numTargetRowsUpdated="0"), add(9), REMOVE),
        commit(info("WRITE", numDeletedRows="0", numCopiedRows="9"), add(9), REMOVE),
    ],
)
def test_rule_10_6_a_version_whose_rows_are_not_all_counted_is_an_update(text: bytes) -> None:
    assert read_commit(1, text) is not None


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


def test_what_is_not_a_commit_is_an_error() -> None:
    for text in (b"{", b"[1]"):
        with pytest.raises(ValueError, match=r"Expecting|JSON object"):
            read_commit(1, text)
