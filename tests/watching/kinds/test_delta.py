"""New versions of Delta tables become updates, each once (10.4, 10.6)."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from assetflow.watchers import DeltaTableTrigger
from tests.environment.waiting import until_async
from tests.watching.outside import Direct, updates, watch, watching


def trigger(table: Path, **options: Any) -> DeltaTableTrigger:
    return DeltaTableTrigger(str(table), every=timedelta(seconds=1), **options)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def versions(direct: Direct) -> list[object]:
    return [event.extra["version"] for event in updates(direct.ledger)]


def cursor_is(direct: Direct, version: int) -> Callable[[], bool]:
    def come_so_far() -> bool:
        return any(item["version"] == version for item in items(direct))

    return come_so_far


def items(direct: Direct) -> list[Any]:
    return list(direct.ledger.reader.watchers.items("w").values())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with one version."""
    place = tmp_path / "orders"
    write_deltalake(place, rows(1, 2, 3))
    return place


async def test_rule_10_4_what_is_there_is_known_and_each_new_version_is_an_update(direct: Direct, table: Path) -> None:
    watch(direct.ledger, trigger(table))
    async with watching(direct):
        await until_async(cursor_is(direct, 0))
        write_deltalake(table, rows(4, 5), mode="append")
        await until_async(lambda: versions(direct) == [1])
    # While nobody watches, two versions come.
    DeltaTable(table).delete("id = 1")
    DeltaTable(table).update(predicate="id = 2", updates={"id": "20"})
    async with watching(direct):
        await until_async(lambda: versions(direct) == [1, 2, 3])
    assert [event.extra for event in updates(direct.ledger)] == [
        {"version": 1, "operation": "WRITE", "rows_added": 2},
        {"version": 2, "operation": "DELETE", "rows_deleted": 1},
        {"version": 3, "operation": "UPDATE", "rows_updated": 1},
    ]
    assert updates(direct.ledger)[0].origin.by == f"Delta table {table}, version 1"


async def test_rule_10_6_a_log_cut_off_below_the_cursor_is_one_update(direct: Direct, table: Path) -> None:
    watch(direct.ledger, trigger(table))
    async with watching(direct):
        await until_async(cursor_is(direct, 0))
    for number in range(5):
        write_deltalake(table, rows(number), mode="append")
    cut_off(table, 3)
    async with watching(direct):
        await until_async(lambda: versions(direct) == [5])
        assert updates(direct.ledger)[0].extra == {"version": 5, "gap": True}
        write_deltalake(table, rows(9), mode="append")
        await until_async(lambda: versions(direct) == [5, 6])


def cut_off(table: Path, last: int) -> None:
    """Remove the log up to a version, after a checkpoint."""
    DeltaTable(table).create_checkpoint()
    for version in range(last + 1):
        (table / "_delta_log" / f"{version:020d}.json").unlink(missing_ok=True)


@pytest.mark.rule("10.6")
async def test_a_table_that_is_made_anew_is_an_update_though_the_version_is_equal(direct: Direct, table: Path) -> None:
    watch(direct.ledger, trigger(table))
    async with watching(direct):
        await until_async(cursor_is(direct, 0))
        shutil.rmtree(table)
        write_deltalake(table, rows(7, 8))
        await until_async(lambda: versions(direct) == [0])
        assert updates(direct.ledger)[0].extra["gap"]
