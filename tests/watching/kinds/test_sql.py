"""A changed value of a query is an update, each once (10.4)."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assetflow.watchers import SQLTrigger
from tests.environment.waiting import until_async
from tests.watching.outside import Direct, updates, watch, watching

NEWEST = "select max(at) from orders"


def trigger(database: Path, query: str = NEWEST, **options: Any) -> SQLTrigger:
    return SQLTrigger(f"sqlite:///{database}", query, every=timedelta(seconds=1), **options)


def values(direct: Direct) -> list[object]:
    return [event.extra["value"] for event in updates(direct.ledger)]


def known(direct: Direct, value: object) -> Callable[[], bool]:
    def knows() -> bool:
        cursor: Any = direct.ledger.reader.watchers.items("w").get("cursor")
        return cursor is not None and cursor["value"] == value

    return knows


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A database with an order."""
    place = tmp_path / "shop.db"
    write(place, "create table orders (at text, n integer)")
    write(place, "insert into orders values ('2026-01-01', 1)")
    return place


def write(place: Path, statement: str) -> None:
    with closing(sqlite3.connect(place)) as connection:
        connection.execute(statement)
        connection.commit()


async def test_rule_10_4_what_is_there_is_known_and_a_changed_value_is_an_update(direct: Direct, shop: Path) -> None:
    watch(direct.ledger, trigger(shop))
    async with watching(direct):
        await until_async(known(direct, "2026-01-01"))
        write(shop, "insert into orders values ('2026-01-02', 2)")
        await until_async(lambda: values(direct) == ["2026-01-02"])
    write(shop, "insert into orders values ('2026-01-03', 3)")
    async with watching(direct):
        await until_async(lambda: values(direct) == ["2026-01-02", "2026-01-03"])
    assert updates(direct.ledger)[1].extra == {"value": "2026-01-03", "before": "2026-01-02"}
    assert updates(direct.ledger)[1].origin.by == f"{NEWEST} of sqlite:///{shop}, value 2026-01-03"


@pytest.mark.parametrize(("bad", "before"), [("9e999", "Infinity"), ("'a' || char(0)", "a\ufffd")])
async def test_rule_10_2_a_value_that_cannot_be_recorded_is_refused_alone(
    direct: Direct, shop: Path, bad: str, before: str
) -> None:
    watch(direct.ledger, trigger(shop, "select n from orders"))
    async with watching(direct):
        await until_async(known(direct, 1))
        write(shop, f"update orders set n = {bad}")
        await until_async(known(direct, before))
        write(shop, "update orders set n = 2")
        await until_async(lambda: values(direct) == [2])
    assert updates(direct.ledger)[0].extra == {"value": 2, "before": before}
    assert len(list(direct.ledger.reader.events.refused())) == 1


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select at from elsewhere", "no such table: elsewhere"),
        ("savepoint a", "returns no rows"),
        ("insert into orders values ('2027-01-01', 9)", "readonly database"),
        ("drop table orders", "readonly database"),
        ("select zeroblob(20000)", "more than 10,000 characters"),
    ],
)
async def test_a_query_that_cannot_be_a_value_is_told(direct: Direct, shop: Path, query: str, words: str) -> None:
    watch(direct.ledger, trigger(shop, query))
    async with watching(direct):
        await until_async(lambda: words in direct.watcher.error)
    with closing(sqlite3.connect(shop)) as connection:
        assert connection.execute("select count(*) from orders").fetchone() == (1,)


@pytest.mark.postgres
async def test_a_refused_password_is_told_and_never_shown(
    direct: Direct, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    watch(direct.ledger, SQLTrigger("postgresql+psycopg://nobody:${SHOP_PASSWORD}@127.0.0.1/postgres", "select 1"))
    async with watching(direct):
        await until_async(lambda: "nobody" in direct.watcher.error)
    assert "hunter2" not in direct.watcher.error + "".join(capsys.readouterr())
