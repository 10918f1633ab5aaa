"""Upgrades happen completely or not at all, one after the other, never while an evaluator is running; and checks."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine, create_engine, event, text

from assetflow.errors import EvaluatorRunning, LedgerError, LedgerVersion
from assetflow.ledger import Holder, Ledger, Reader, schema
from assetflow.ledger import ledger as upkeep
from assetflow.ledger.migrations import VERSION
from assetflow.ledger.sql.engine import ledger_url, open_engine, writing
from tests.environment.postgres import new_database
from tests.ledger.making import NOW, A, update
from tests.ledger.next_version import NEXT, become, write_migrations

ROOT = Path(__file__).parents[2]
BOTH = pytest.mark.parametrize("empty", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)


@pytest.fixture
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.db'}"
        return
    with new_database() as url:
        yield url


@contextmanager
def engine_of(url: str) -> Iterator[Engine]:
    engine = writing(open_engine(ledger_url(url)))
    yield engine
    engine.dispose()


def make_this_version(url: str) -> None:
    """Make a ledger of this version, with an asset in it."""
    upkeep.upgrade(url, now=NOW)
    with Ledger.open(url) as ledger:
        ledger.writer.events.record([update(A)], NOW)


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    folder = tmp_path / "next" / "migrations"
    write_migrations(folder)
    return folder


@pytest.fixture
def older(empty: str, migrations: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a ledger of this version, in a process that is the next version from then on."""
    make_this_version(empty)
    become(monkeypatch, migrations)
    return empty


def version_of(url: str) -> str | None:
    with engine_of(url) as engine, engine.connect() as connection:
        return schema.current_version(connection)


def tables_of(url: str) -> set[str]:
    from sqlalchemy import inspect

    with engine_of(url) as engine:
        return set(inspect(engine).get_table_names())


@BOTH
def test_upgrade_of_an_older_version(older: str) -> None:
    assert upkeep.check(older).state == "older"
    assert upkeep.upgrade(older).before == VERSION
    assert upkeep.check(older).state == "up to date"
    with Ledger.open(older) as ledger:
        assert [each.uri for each in ledger.reader.assets.all()] == [A.uri]
        ledger.writer.events.record([update(A)], NOW)
    with engine_of(older) as engine, engine.connect() as connection:
        assert connection.execute(text("SELECT uri, seen FROM later")).all() == [(A.uri, "2026")]


def test_sqlite_is_upgraded_when_it_is_opened(
    tmp_path: Path, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    make_this_version(url)
    become(monkeypatch, migrations)
    with pytest.raises(LedgerVersion, match=rf"{VERSION}.*{NEXT}.*database upgrade"):
        Reader.open(url)
    Ledger.open(url).close()
    assert version_of(url) == NEXT


@pytest.mark.postgres
def test_postgres_is_upgraded_on_request_alone(migrations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_database() as url:
        make_this_version(url)
        become(monkeypatch, migrations)
        for opening in (Ledger.open, Reader.open):
            with pytest.raises(LedgerVersion, match=rf"{VERSION}.*{NEXT}.*database upgrade"):
                opening(url)
        assert version_of(url) == VERSION


@BOTH
def test_the_tables_of_a_newer_program_are_left_alone(empty: str) -> None:
    upkeep.upgrade(empty)
    with engine_of(empty) as engine, engine.begin() as connection:
        connection.execute(text("UPDATE ledger_version SET version_num = '9999'"))
    for opening in (Ledger.open, Reader.open, upkeep.upgrade):
        with pytest.raises(LedgerVersion, match=rf"9999.*{VERSION}.*Update assetflow"):
            opening(empty)
    assert upkeep.check(empty).state == "newer"


@BOTH
def test_no_upgrade_while_an_evaluator_works(empty: str) -> None:
    with Ledger.open(empty) as ledger:
        holder = Holder.this_process(uuid4())
        ledger.writer.lease.acquire(holder)
        with ledger.writes() as connection:
            connection.execute(text("UPDATE ledger_version SET version_num = '0000'"))
        with pytest.raises(EvaluatorRunning, match=f"process {holder.pid} on"):
            upkeep.upgrade(empty)
        assert version_of(empty) == "0000"


@BOTH
def test_an_upgrade_that_fails_leaves_the_version_before(older: str) -> None:
    before, failing = tables_of(older), 1
    while fails_at(older, failing):
        assert (version_of(older), tables_of(older)) == (VERSION, before)
        failing += 1
    assert failing > 5, "there is more than that to do"
    assert upkeep.check(older).state == "up to date"


def fails_at(url: str, number: int) -> bool:
    """Upgrade until the given statement that changes something, and return True if it was reached."""
    statements = 0

    def count(*given: Any) -> None:
        nonlocal statements
        if given[2].lstrip().upper().startswith(("CREATE", "ALTER", "DROP", "UPDATE", "INSERT")):
            statements += 1
            if statements == number:
                raise ZeroDivisionError

    event.listen(Engine, "before_cursor_execute", count)
    try:
        upkeep.upgrade(url)
    except ZeroDivisionError:
        return True
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    return False


PROGRAM = """
import os, signal, sys
from pathlib import Path
import pytest
from sqlalchemy import Engine, event
from assetflow.ledger import ledger as upkeep
from tests.ledger.next_version import become

become(pytest.MonkeyPatch(), Path(sys.argv[2]))
"""
KILLED = """
@event.listens_for(Engine, "before_cursor_execute")
def kill(*given):
    if "later_seen" in given[2]:
        os.kill(os.getpid(), signal.SIGKILL)

upkeep.upgrade(sys.argv[1])
"""


def program(code: str, url: str, migrations: Path) -> list[str]:
    """The command of another process that is the next version."""
    return [sys.executable, "-c", PROGRAM + code, url, str(migrations)]


@pytest.mark.long
@BOTH
def test_killed_in_an_upgrade(older: str, migrations: Path) -> None:
    before = tables_of(older)
    ended = subprocess.run(program(KILLED, older, migrations), cwd=ROOT, check=False, timeout=60)
    assert ended.returncode == -9
    assert (version_of(older), tables_of(older)) == (VERSION, before)
    assert upkeep.upgrade(older).before == VERSION
    assert upkeep.check(older).state == "up to date"


@pytest.mark.long
@BOTH
def test_concurrent_upgrades_are_done_one_after_the_other(older: str, migrations: Path) -> None:
    done = "done = upkeep.upgrade(sys.argv[1]); print(done.before, done.after)"
    command = program(done, older, migrations)
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    said = [each.communicate(timeout=90)[0].split() for each in started]
    assert sorted(said) == [[VERSION, NEXT], [NEXT, NEXT]]
    assert upkeep.check(older).state == "up to date"


@BOTH
def test_no_evaluator_starts_during_an_upgrade(older: str) -> None:
    upgrading, begun, go_on = Thread(target=upkeep.upgrade, args=[older]), Event(), Event()

    def stand_still(*given: Any) -> None:
        if "CREATE TABLE later" in given[2]:
            begun.set()
            assert go_on.wait(60)

    event.listen(Engine, "before_cursor_execute", stand_still)
    try:
        upgrading.start()
        assert begun.wait(60)
        assert upkeep.check(older).state == "older"
        with pytest.raises(LedgerVersion, match=rf"{VERSION}.*database upgrade"):
            Reader.open(older)
        with pytest.raises(LedgerError, match=rf"{VERSION}.*database upgrade|another process holds the ledger"):
            Ledger.open(older, lock_timeout=0.1)
    finally:
        go_on.set()
        upgrading.join()
        event.remove(Engine, "before_cursor_execute", stand_still)
    assert upkeep.check(older).state == "up to date"


@BOTH
def test_check_says_how_the_tables_differ(empty: str) -> None:
    if empty.startswith("postgres"):
        assert upkeep.check(empty).state == "empty"
    upkeep.upgrade(empty)
    for statement in (
        "DROP INDEX asset_group",
        "ALTER TABLE decision DROP COLUMN run_state",
        "CREATE TABLE theirs (x int)",
    ):
        with engine_of(empty) as engine, engine.begin() as connection:
            connection.execute(text(statement))
    found = upkeep.check(empty)
    assert found.state == "damaged"
    assert any("asset_group" in fault for fault in found.faults)
    assert any("add column" in fault and "run_state" in fault for fault in found.faults)
    assert not any("theirs" in fault for fault in found.faults)
    with Reader.open(empty) as reader, pytest.raises(LedgerVersion, match="database check"):
        reader.decisions.find()


def test_check_reads_the_content_of_a_file(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    with pytest.raises(LedgerError, match="there is no ledger"):
        upkeep.check(place)
    upkeep.upgrade(place)
    engine = create_engine(f"sqlite:///{place}")
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO asset_name VALUES ('orphan', 's3://nowhere/')"))
    engine.dispose()
    assert upkeep.check(place).faults == ["a row of asset_name refers to a row of asset that is not there"]


@pytest.mark.postgres
def test_tables_of_others_with_the_same_names_are_left_alone() -> None:
    with new_database() as url:
        with engine_of(url) as engine, engine.begin() as connection:
            connection.execute(text("CREATE TABLE asset (theirs int)"))
        for opening in (upkeep.upgrade, Ledger.open):
            with pytest.raises(LedgerError, match=r"do not belong to a ledger.*database of its own"):
                opening(url)
        assert tables_of(url) == {"asset"}
