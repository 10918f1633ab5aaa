"""Upgrade and check the database of a ledger, as an operator."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal
from uuid import UUID, uuid4

from sqlalchemy import URL, Connection, Engine, insert, select

from assetflow.errors import LedgerError
from assetflow.ledger import schema
from assetflow.ledger.lease import application_name
from assetflow.ledger.migrations import VERSION
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.sql import engine
from assetflow.ledger.sql.engine import (
    APPLICATION,
    LOCK_TIMEOUT,
    CommitListener,
    default_place,
    ledger_url,
    make_place,
    open_engine,
    place_of,
    writing,
)
from assetflow.ledger.sql.failures import explained
from assetflow.ledger.sql.tables import LEDGER
from assetflow.ledger.write.store import Store
from assetflow.ledger.write.writer import Writer


class Ledger(Store, AbstractContextManager["Ledger"]):
    """One ledger, open for reading and writing; thread safe.

    `ledger.writer` has the operations, each of which is one transaction, and `ledger.reader` the reads.

    Attributes:
        place: the file or the address of the ledger, for people to read.
        id: the ledger's own id; a rebuilt ledger has another one.
        created: when it was made.
    """

    def __init__(self, url: URL, engine: Engine) -> None:
        super().__init__(engine, place_of(url))
        self._url = url
        with engine.connect() as connection:
            row = connection.execute(select(LEDGER.c.id, LEDGER.c.created)).one()
        self.id: UUID = row[0]
        self.created: datetime = row[1]

    @classmethod
    def open(
        cls,
        url_or_path: str | Path | None = None,
        *,
        now: datetime | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
        evaluator: UUID | None = None,
    ) -> Ledger:
        """Open a ledger, and make it if it does not exist. An older one is upgraded on SQLite, and refused on Postgres.

        Parameters:
            url_or_path: a file or an SQLAlchemy URL (SQLite or Postgres); by default the ledger of the settings.
            now: the time at which a new ledger is made; by default the time of the clock.
            lock_timeout: how long to wait for another writer, in seconds.
            evaluator: the id of the evaluator that will use it: its successor ends the sessions that it left.

        Raises:
            LedgerVersion: a newer assetflow wrote the ledger, or, on Postgres, an older one.
            EvaluatorRunning: the ledger needs an upgrade, and an evaluator is running on it.
            LedgerError: the ledger cannot be opened, or is damaged.
            LedgerLocked: another process held the ledger for longer than the time limit.
        """
        url = ledger_url(url_or_path if url_or_path is not None else default_place())
        make_place(url)
        application = APPLICATION if evaluator is None else application_name(evaluator)
        engine = open_engine(url, lock_timeout=lock_timeout, application=application)
        try:
            with explained(place_of(url)):
                with writing(engine).begin() as connection:
                    schema.prepare(connection, place=place_of(url))
                    begin_ledger(connection, now or datetime.now(UTC))
                return cls(url, engine)
        except BaseException:
            engine.dispose()
            raise

    @cached_property
    def writer(self) -> Writer:
        return Writer(self)

    @cached_property
    def reader(self) -> Reader:
        return Reader(self._engine, self.place)

    def listen(self) -> CommitListener:
        """Return a listener that hears of commits from now on, whichever process makes them.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        return engine.listen(self._url)

    def close(self) -> None:
        """Close all connections to the database. The ledger cannot be used afterwards."""
        self._engine.dispose()

    def __exit__(self, *_: object) -> None:
        self.close()


def begin_ledger(connection: Connection, now: datetime) -> None:
    """Give a new ledger its id. Do nothing if it has one."""
    if connection.execute(select(LEDGER.c.id)).one_or_none() is None:
        connection.execute(insert(LEDGER), [{"number": 1, "id": uuid4(), "created": now}])


# How long to wait for another upgrade.
SECONDS_TO_WAIT = 600.0
MOST_FAULTS = 20

State = Literal["up to date", "older", "newer", "empty", "damaged"]


@dataclass(frozen=True)
class Upgraded:
    """The result of an upgrade.

    Attributes:
        place: the file or the address.
        before: the version before the upgrade; `None` if there was no ledger.
        after: the version after it.
    """

    place: str
    before: str | None
    after: str


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    Attributes:
        place: the file or the address.
        server: the name and the version of the database server.
        version: the version of the tables; `None` if there are no tables.
        needed: the version that this program needs.
        faults: what is wrong with the tables or their content, a sentence each.
    """

    place: str
    server: str
    version: str | None
    needed: str
    faults: Sequence[str]

    @property
    def state(self) -> State:
        if self.version is None:
            return "damaged" if self.faults else "empty"
        if self.version != self.needed:
            return "older" if self.version < self.needed else "newer"
        return "damaged" if self.faults else "up to date"


def upgrade(url_or_path: str | Path | None = None, *, now: datetime | None = None) -> Upgraded:
    """Make the tables of a ledger, or upgrade them to this program's version, completely or not at all.

    Parameters:
        url_or_path: as for `Ledger.open`.

    Raises:
        LedgerVersion: a newer program wrote them.
        EvaluatorRunning: an evaluator is running on them.
        LedgerError: they cannot be changed.
    """
    url = ledger_url(url_or_path if url_or_path is not None else default_place())
    place = place_of(url)
    make_place(url)
    engine = open_engine(url, lock_timeout=SECONDS_TO_WAIT)
    try:
        with explained(place), writing(engine).begin() as connection:
            before = schema.upgrade(connection, place=place)
            begin_ledger(connection, now or datetime.now(UTC))
    finally:
        engine.dispose()
    return Upgraded(place, before, VERSION)


def check(url_or_path: str | Path | None = None) -> Checked:
    """Check that the tables are those of this program, and, on SQLite, that their content is intact.

    Parameters:
        url_or_path: as for `Ledger.open`.

    Raises:
        LedgerError: the database cannot be read.
    """
    url = ledger_url(url_or_path if url_or_path is not None else default_place())
    place = place_of(url)
    if url.get_backend_name() == "sqlite" and not Path(place).exists():
        raise LedgerError("there is no ledger", where=place, fix="`assetflow database upgrade` makes one")
    engine = open_engine(url, read_only=True)
    try:
        with explained(place), engine.connect() as connection:
            version = schema.current_version(connection)
            faults = _faults_of_file(connection) if engine.dialect.name == "sqlite" else []
            if version == VERSION:
                faults += schema.differences(connection)
            return Checked(place, _server(connection), version, VERSION, faults)
    finally:
        engine.dispose()


def _server(connection: Connection) -> str:
    name = {"sqlite": "SQLite", "postgresql": "Postgres"}[connection.dialect.name]
    return f"{name} {'.'.join(map(str, connection.dialect.server_version_info or ()))}"


def _faults_of_file(connection: Connection) -> list[str]:
    said = [str(row[0]) for row in connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_FAULTS})")]
    if said != ["ok"]:
        return said
    rows = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(MOST_FAULTS)
    return [f"a row of {row[0]} refers to a row of {row[2]} that is not there" for row in rows]
