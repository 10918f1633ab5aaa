"""New snapshots of Iceberg tables become updates, each once (10.4, 10.6). The catalog is SQLite's."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from assetflow.watchers import IcebergTableTrigger
from tests.environment.waiting import until_async
from tests.watching.outside import Direct, updates, watch, watching

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}


@pytest.fixture
def catalog(properties: dict[str, str]) -> Catalog:
    made = load_catalog("lake", **properties)
    made.create_namespace("shop")
    return made


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """A table with one snapshot."""
    made = catalog.create_table("shop.orders", schema=SCHEMA)
    made.append(rows(1, 2, 3))
    return made


@pytest.fixture
def trigger(properties: dict[str, str]) -> IcebergTableTrigger:
    return IcebergTableTrigger("lake", "shop.orders", properties=properties, every=timedelta(seconds=1))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def extras(direct: Direct) -> list[Any]:
    return [event.extra for event in updates(direct.ledger)]


def known(direct: Direct, table: Table) -> Callable[[], bool]:
    def knows() -> bool:
        cursor: Any = direct.ledger.reader.watchers.items("w").get("cursor")
        return cursor is not None and cursor["snapshot"] == table.current_snapshot().snapshot_id  # type: ignore[union-attr]

    return knows


async def test_rule_10_4_what_is_there_is_known_and_each_later_snapshot_is_an_update(
    direct: Direct, table: Table, trigger: IcebergTableTrigger
) -> None:
    watch(direct.ledger, trigger)
    async with watching(direct):
        await until_async(known(direct, table))
        table.append(rows(4, 5))
        await until_async(lambda: len(extras(direct)) == 1)
    table.delete("id = 1")
    table.append(rows())
    table.overwrite(rows(9))
    async with watching(direct):
        await until_async(known(direct, table))
    ids = [each.snapshot_id for each in table.metadata.snapshots]
    names = ("version", "operation", "rows_added", "rows_deleted")
    assert [tuple(each.get(name) for name in names) for each in extras(direct)] == [
        (ids[1], "append", 2, None),
        # The rows of the file that are left are written anew.
        (ids[2], "overwrite", 2, 3),
        # The append of nothing is no update.
        (ids[4], "delete", None, 4),
        (ids[5], "append", 1, None),
    ]


async def test_rule_10_6_snapshots_that_are_gone_below_the_cursor_are_one_update(
    direct: Direct, table: Table, trigger: IcebergTableTrigger
) -> None:
    watch(direct.ledger, trigger)
    async with watching(direct):
        await until_async(known(direct, table))
    for number in range(4):
        table.append(rows(number))
    gone = [each.snapshot_id for each in table.metadata.snapshots[:3]]
    table.maintenance.expire_snapshots().by_ids(gone).commit()
    async with watching(direct):
        await until_async(known(direct, table))
        assert extras(direct) == [{"version": table.current_snapshot().snapshot_id, "gap": True}]  # type: ignore[union-attr]
        table.append(rows(7))
        await until_async(lambda: len(extras(direct)) == 2)
