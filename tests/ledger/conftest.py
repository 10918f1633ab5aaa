"""Ledgers for tests: a fresh SQLite file for each, and one Postgres database that is emptied for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from assetflow.ledger import Ledger
from assetflow.ledger.tables import Base

START = datetime(2026, 1, 1, tzinfo=UTC)
SERVER = "postgresql+psycopg://root@127.0.0.1:5432"

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
    name = f"assetflow_ledger_{os.getpid()}_{uuid4().hex[:8]}"
    server = create_engine(f"{SERVER}/test", isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield f"{SERVER}/{name}"
    with server.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


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
