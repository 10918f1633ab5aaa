"""Ledgers for tests: a fresh SQLite file for each, and one Postgres database that is emptied for each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from assetflow.ledger import Ledger
from assetflow.ledger.tables import Base
from tests.environment.postgres import new_database

START = datetime(2026, 1, 1, tzinfo=UTC)

NewLedger = Callable[[], Ledger]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new ledger's file: copying it is faster than migrating an empty one."""
    path = tmp_path_factory.mktemp("template") / "ledger.db"
    Ledger.open(path, now=START).close()
    return path


@pytest.fixture
def new_sqlite(template: Path, tmp_path: Path) -> Iterator[NewLedger]:
    """Makes ledgers in files of their own; closed after the test."""
    opened: list[Ledger] = []
    numbers = count()

    def make() -> Ledger:
        place = tmp_path / f"ledger-{next(numbers)}.db"
        shutil.copy(template, place)
        opened.append(Ledger.open(place, now=START))
        return opened[-1]

    yield make
    for ledger in opened:
        ledger.close()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A database of this test session's own, dropped at its end."""
    with new_database() as url:
        yield url


@pytest.fixture
def new_postgres(postgres_url: str) -> Iterator[NewLedger]:
    """Makes the Postgres ledger anew; the one made before is gone with it."""
    opened: list[Ledger] = []

    def close() -> None:
        while opened:
            opened.pop().close()

    def make() -> Ledger:
        close()
        Ledger.open(postgres_url, now=START).close()
        engine = create_engine(postgres_url)
        with engine.begin() as connection:
            connection.execute(text("TRUNCATE " + ", ".join(f'"{name}"' for name in Base.metadata.tables)))
        engine.dispose()
        opened.append(Ledger.open(postgres_url, now=START))
        return opened[-1]

    yield make
    close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def new_ledger(request: pytest.FixtureRequest) -> NewLedger:
    """Makes ledgers on each of the databases in turn."""
    return request.getfixturevalue(f"new_{request.param}")


@pytest.fixture
def ledger(new_ledger: NewLedger) -> Ledger:
    return new_ledger()


@pytest.fixture
def sqlite_ledger(new_sqlite: NewLedger) -> Ledger:
    return new_sqlite()
