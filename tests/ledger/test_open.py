"""Opening a ledger: a new one is made, an older one is upgraded, and errors say what to do."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from assetflow.errors import LedgerError, LedgerLocked
from assetflow.ledger import Ledger, Reader
from assetflow.ledger.sql import engine
from tests.ledger.conftest import START, NewLedger
from tests.ledger.making import NOW, A, update


def place_of(ledger: Ledger) -> Path:
    return Path(ledger.place)


def rights(place: Path) -> dict[str, int]:
    """Return the rights of a folder and of the files in it."""
    return {each.name: each.stat().st_mode & 0o777 for each in (place, *place.iterdir())}


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """A process whose files everybody may read and write, unless it sets other rights."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_to_all")
def test_ledger_and_folder_are_private(tmp_path: Path) -> None:
    home = tmp_path / "far" / "home"
    with Ledger.open(home / "ledger.db", now=START) as ledger, Reader.open(home / "ledger.db") as reader:
        ledger.writer.events.record([update(A)], NOW)
        assert reader.events.count() == 1
        assert rights(home) == {"home": 0o700, "ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}


@pytest.mark.usefixtures("open_to_all")
def test_an_open_ledger_becomes_private_and_its_folder_stays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with Ledger.open(home / "ledger.db", now=START):
        for file in home.iterdir():
            file.chmod(0o644)
        with Ledger.open(home / "ledger.db"):
            pass
        found = rights(home)
    assert found == {"home": 0o777, "ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:own.db?uri=true"])
def test_sqlite_needs_a_file(address: str) -> None:
    with pytest.raises(LedgerError, match="not on SQLite without a file"):
        Ledger.open(address)


def test_sqlite_is_durable(sqlite_ledger: Ledger) -> None:
    with sqlite_ledger.writes() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    place.write_bytes(b"this is no database at all, but long enough to be taken for one" * 20)
    for opening in (Ledger.open, Reader.open):
        with pytest.raises(LedgerError, match="--since") as raised:
            opening(place)
        assert raised.value.where == str(place)


def test_damaged_pages_say_what_to_do(new_sqlite: NewLedger) -> None:
    ledger = new_sqlite()
    ledger.writer.events.record([update(A, extra={"x": "y" * 3000}) for _ in range(50)], NOW)
    ledger.close()
    place = place_of(ledger)
    size = place.stat().st_size
    with place.open("r+b") as file:
        file.seek(4096 * 8)
        file.write(b"\xff" * (size - 4096 * 8))

    def use() -> None:
        with Ledger.open(place) as broken:
            broken.reader.events.find()
            broken.writer.events.record([update(A)], NOW)

    with pytest.raises(LedgerError, match=r"damaged.*--since"):
        use()


def test_something_else_than_a_file_is_refused_at_once(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    os.mkfifo(place)
    for opening in (Ledger.open, Reader.open):
        with pytest.raises(LedgerError, match="not a file"):
            opening(place)


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    with closing(sqlite3.connect(place)) as other:
        other.execute("create table customers (n)")
    with pytest.raises(LedgerError, match=r"do not belong to a ledger, such as customers"):
        Ledger.open(place)
    with closing(sqlite3.connect(place)) as other:
        assert other.execute("select name from sqlite_master").fetchall() == [("customers",)]


def test_reader_without_a_ledger_says_so(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"there is no ledger.*`assetflow evaluator start`"):
        Reader.open(tmp_path / "ledger.db")
    sqlite3.connect(tmp_path / "empty.db").executescript("CREATE TABLE x (y)").connection.close()
    with pytest.raises(LedgerError, match="holds no ledger"):
        Reader.open(tmp_path / "empty.db")


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="ASSETFLOW_HOME"):
        Ledger.open(tmp_path / "file" / "ledger.db")


def test_locked_ledger(new_sqlite: NewLedger) -> None:
    holder = new_sqlite()
    other = Ledger.open(holder.place, lock_timeout=0.1)
    with other, holder.writes(), pytest.raises(LedgerLocked, match="another process holds the ledger"):
        other.writer.events.record([update(A)], NOW)


def test_read_only_ledger(sqlite_ledger: Ledger) -> None:
    sqlite_ledger.writer.events.record([update(A)], NOW)
    with Reader.open(sqlite_ledger.place) as reader:
        assert reader.events.count() == 1
        with pytest.raises(LedgerError, match="read-only"), reader._connect() as connection:
            connection.exec_driver_sql("DELETE FROM event")


def test_full_disk(sqlite_ledger: Ledger) -> None:
    with sqlite_ledger.writes() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerError, match="disk of the ledger is full"):
        sqlite_ledger.writer.events.record([update(A, extra={"x": "y" * 100_000})], NOW)
    assert sqlite_ledger.reader.events.count() == 0


def test_another_program_begins_with_the_same_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "ledger.db"
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerLocked, match="another process holds the ledger"):
            Ledger.open(place, lock_timeout=0.1)
        monkeypatch.setattr(engine, "sleep", lambda _seconds: other.rollback())
        Ledger.open(place).close()


def test_numbers_are_never_used_again(ledger: Ledger) -> None:
    ledger.writer.events.record([update(A)], NOW)
    with ledger.writes() as connection:
        connection.execute(text("DELETE FROM receipt"))
        connection.execute(text("DELETE FROM event"))
    [(recorded, _)] = ledger.writer.events.record([update(A)], NOW)
    assert [e.sequence for e in recorded.events] == [2]
