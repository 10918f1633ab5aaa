"""The ledger: the durable state of assetflow in one database."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from uuid import UUID, uuid4

from sqlalchemy import URL, Connection, Engine, insert, select

from assetflow.ledger import schema
from assetflow.ledger.lease import application_name
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


class Ledger(Store):
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

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def begin_ledger(connection: Connection, now: datetime) -> None:
    """Give a new ledger its id. Do nothing if it has one."""
    if connection.execute(select(LEDGER.c.id)).one_or_none() is None:
        counters = dict.fromkeys(("last_event", "last_decision", "last_consumer", "revision", "rewritten"), 0)
        connection.execute(insert(LEDGER), [{"number": 1, "id": uuid4(), "created": now} | counters])
