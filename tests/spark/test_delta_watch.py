"""A Delta table whose files Spark writes is watched: deltalake commits them, as there is no Delta for Spark in pip."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction, create_table_with_add_actions

from assetflow.core.watchers.table_changes import Change
from assetflow.watchers import DeltaTableTrigger
from assetflow.watching.kinds.tables import DeltaLog

pytestmark = pytest.mark.spark


def written_by_spark(spark: Any, table: Path, numbers: range, *, changes: bool = True) -> list[Any]:
    """Let Spark write a file into the table's folder, and return what a commit has to add."""
    before = set(table.glob("*.parquet"))
    spark.range(numbers.start, numbers.stop).coalesce(1).write.mode("append").parquet(str(table))
    (file,) = set(table.glob("*.parquet")) - before
    stats = f'{{"numRecords": {len(numbers)}}}'
    return [AddAction(file.name, file.stat().st_size, {}, int(file.stat().st_mtime * 1000), changes, stats)]


def changes_since(table: Path) -> Callable[[], list[Change]]:
    """Return a function that looks at the table, as its watcher does."""
    log = DeltaLog(DeltaTableTrigger(str(table), every=timedelta(seconds=1)), str(table))
    cursor: Any = log.look(None).cursor

    def look() -> list[Change]:
        nonlocal cursor
        found = log.look(cursor)
        cursor = found.cursor
        return list(found.changes)

    return look


def test_each_version_that_spark_wrote_is_an_update(spark: Any, tmp_path: Path) -> None:
    table = tmp_path / "orders"
    schema = Schema.from_json(
        '{"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": true, "metadata": {}}]}'
    )
    create_table_with_add_actions(str(table), schema, written_by_spark(spark, table, range(3)))
    look = changes_since(table)
    for numbers, changes in ((range(3, 7), True), (range(7, 8), True), (range(8, 9), False)):
        actions = written_by_spark(spark, table, numbers, changes=changes)
        DeltaTable(table).create_write_transaction(actions, "append", schema)
    assert [(each.extra["version"], each.extra["rows_added"]) for each in look()] == [(1, 4), (2, 1)]
    assert look() == []
    assert sorted(row.id for row in spark.read.parquet(*DeltaTable(table).file_uris()).collect()) == list(range(9))
