"""Upgrades happen completely or not at all, one after the other, never while an evaluator is running; and checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID, uuid4

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event, text

from assetflow.errors import EvaluatorRunning, LedgerError, LedgerVersion
from assetflow.ledger import Holder, Ledger, Reader, schema, upkeep
from assetflow.ledger.sql.engine import ledger_url, open_engine, writing
from assetflow.ledger.version import VERSION
from tests.environment.postgres import new_database
from tests.ledger.making import NOW, A, update

ROOT = Path(__file__).parents[2]
BOTH = pytest.mark.parametrize("empty", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
ID = UUID(int=7)


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


def make_first_version(url: str) -> None:
    """Make a ledger of the first version, with an asset in it."""
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
    with engine_of(url) as engine, engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        number = ID.hex if engine.dialect.name == "sqlite" else str(ID)
        ledger = f"INSERT INTO ledger VALUES (1, '{number}', '{NOW.isoformat(timespec='microseconds')}', NULL, 0, 0, 0)"
        connection.execute(text(ledger))
        connection.execute(text("INSERT INTO asset VALUES (1, 's3://lake/a', '', '{}', '2026-01-01T00:00:00+00:00')"))


def version_of(url: str) -> str | None:
    with engine_of(url) as engine, engine.connect() as connection:
        return schema.current_version(connection)


def tables_of(url: str) -> set[str]:
    from sqlalchemy import inspect

    with engine_of(url) as engine:
        return set(inspect(engine).get_table_names())


@BOTH
def test_upgrade_makes_a_ledger(empty: str) -> None:
    done = upkeep.upgrade(empty, now=NOW)
    assert (done.before, done.after) == (None, VERSION)
    assert upkeep.check(empty).state == "up to date"
    assert upkeep.upgrade(empty).before == VERSION
    with Ledger.open(empty) as ledger:
        assert ledger.created == NOW


@BOTH
def test_upgrade_of_the_first_version(empty: str) -> None:
    make_first_version(empty)
    assert upkeep.check(empty).state == "older"
    assert upkeep.upgrade(empty).before == "0001"
    assert upkeep.check(empty).state == "up to date"
    with Ledger.open(empty) as ledger:
        assert ledger.id == ID
        assert [each.uri for each in ledger.reader.assets.all()] == [A.uri]
        ledger.writer.events.record([update(A)], NOW)


def test_sqlite_is_upgraded_when_it_is_opened(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    make_first_version(url)
    with pytest.raises(LedgerVersion, match="database upgrade"):
        Reader.open(url)
    Ledger.open(url).close()
    assert version_of(url) == VERSION


@pytest.mark.postgres
def test_postgres_is_upgraded_on_request_alone() -> None:
    with new_database() as url:
        make_first_version(url)
        for opening in (Ledger.open, Reader.open):
            with pytest.raises(LedgerVersion, match=rf"0001.*{VERSION}.*database upgrade"):
                opening(url)
        assert version_of(url) == "0001"


@BOTH
def test_the_tables_of_a_newer_program_are_left_alone(empty: str) -> None:
    upkeep.upgrade(empty)
    with engine_of(empty) as engine, engine.begin() as connection:
        connection.execute(text("UPDATE ledger_version SET version_num = '9999'"))
    for opening in (Ledger.open, Reader.open, upkeep.upgrade):
        with pytest.raises(LedgerVersion, match=r"9999.*Update assetflow"):
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


@pytest.mark.long
@BOTH
def test_an_upgrade_that_fails_leaves_the_version_before(empty: str) -> None:
    make_first_version(empty)
    before, failing = tables_of(empty), 1
    while fails_at(empty, failing):
        assert (version_of(empty), tables_of(empty)) == ("0001", before)
        failing += 1
    assert failing > 5, "there is more than that to do"
    assert upkeep.check(empty).state == "up to date"


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


KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from assetflow.ledger import upkeep

@event.listens_for(Engine, "before_cursor_execute")
def kill(*given):
    if "standby" in given[2]:
        os.kill(os.getpid(), signal.SIGKILL)

upkeep.upgrade(sys.argv[1])
"""


@pytest.mark.long
@BOTH
def test_killed_in_an_upgrade(empty: str) -> None:
    make_first_version(empty)
    before = tables_of(empty)
    ended = subprocess.run([sys.executable, "-c", KILLED, empty], cwd=ROOT, check=False, timeout=60)
    assert ended.returncode == -9
    assert (version_of(empty), tables_of(empty)) == ("0001", before)
    assert upkeep.upgrade(empty).before == "0001"
    assert upkeep.check(empty).state == "up to date"


@pytest.mark.long
@BOTH
def test_concurrent_upgrades_are_done_one_after_the_other(empty: str) -> None:
    make_first_version(empty)
    command_line = [sys.executable, "-m", "assetflow", "database", "upgrade", "--json"]
    env = os.environ | {"ASSETFLOW_DATABASE_URL": empty}
    started = [subprocess.Popen(command_line, env=env, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    said = [json.loads(each.communicate(timeout=90)[0]) for each in started]
    assert sorted(each["before"] for each in said) == ["0001", VERSION]
    assert {each["after"] for each in said} == {VERSION}
    assert upkeep.check(empty).state == "up to date"


@BOTH
def test_no_evaluator_starts_during_an_upgrade(empty: str) -> None:
    make_first_version(empty)
    upgrading, begun, go_on = Thread(target=upkeep.upgrade, args=[empty]), Event(), Event()

    def stand_still(*given: Any) -> None:
        if "CREATE TABLE standby" in given[2]:
            begun.set()
            assert go_on.wait(60)

    event.listen(Engine, "before_cursor_execute", stand_still)
    try:
        upgrading.start()
        assert begun.wait(60)
        assert upkeep.check(empty).state == "older"
        with pytest.raises(LedgerVersion, match=r"0001.*database upgrade"):
            Reader.open(empty)
        with pytest.raises(LedgerError, match=r"0001.*database upgrade|another process holds the ledger"):
            Ledger.open(empty, lock_timeout=0.1)
    finally:
        go_on.set()
        upgrading.join()
        event.remove(Engine, "before_cursor_execute", stand_still)
    assert upkeep.check(empty).state == "up to date"


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
