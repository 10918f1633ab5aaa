"""The ledger: the durable state of assetflow in one database."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from uuid import UUID, uuid4

from sqlalchemy import URL, Connection, Engine, insert, select

from assetflow.ledger import schema
from assetflow.ledger.engine import (
    APPLICATION,
    LOCK_TIMEOUT,
    default_place,
    ledger_url,
    make_folder,
    open_engine,
    place_of,
    writing,
)
from assetflow.ledger.failures import explained
from assetflow.ledger.lease import application_name
from assetflow.ledger.reader import Reader
from assetflow.ledger.store import Store
from assetflow.ledger.tables import LEDGER
from assetflow.ledger.writer import Writer


class Ledger(Store):
    """One ledger, open for reading and writing; thread safe.

    `ledger.writer` has the operations, each of which is one transaction, and `ledger.reader` the reads.

    Attributes:
        place: the file or the address, as a person reads it.
        id: the ledger's own id; a rebuilt one has another.
        created: when it was made.
    """

    def __init__(self, url: URL, engine: Engine) -> None:
        super().__init__(engine, place_of(url))
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
        """Open a ledger; a new one is made. An older one is brought up to date on SQLite, and refused on Postgres.

        Parameters:
            url_or_path: a file, or an SQLAlchemy URL (SQLite or Postgres); none for what the settings say.
            now: the time at which a new ledger is made; the clock's if none is given.
            lock_timeout: how long to wait for another writer, in seconds.
            evaluator: the id of the evaluator that is to use it, by which its successor finds what it left behind.

        Raises:
            LedgerVersion: it was written by a newer assetflow, or, on Postgres, by an older one.
            EvaluatorRunning: it was written by an older one whose evaluator is at work.
            LedgerError: it cannot be opened, or is damaged.
            LedgerLocked: another process held it for longer than the time limit.
        """
        url = ledger_url(url_or_path if url_or_path is not None else default_place())
        make_folder(url)
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

    def close(self) -> None:
        """Let go of the database; the ledger cannot be used any more."""
        self._engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def begin_ledger(connection: Connection, now: datetime) -> None:
    """Give a ledger that was just made its id."""
    if connection.execute(select(LEDGER.c.id)).one_or_none() is None:
        counters = dict.fromkeys(("last_event", "last_decision", "last_consumer", "revision"), 0)
        connection.execute(insert(LEDGER), [{"number": 1, "id": uuid4(), "created": now} | counters])
