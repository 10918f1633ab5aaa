"""A database that holds a ledger: its transactions."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from threading import Lock
from uuid import UUID

from sqlalchemy import Connection, Engine

from assetflow.ledger.book import LedgerBook
from assetflow.ledger.engine import writing
from assetflow.ledger.failures import explained
from assetflow.ledger.lease import confirm
from assetflow.ledger.memory import Memory
from assetflow.ledger.recent import RecentEvents


class Store:
    """The transactions that write to a ledger: one at a time, whichever threads and processes they come from.

    Attributes:
        place: the file or the address, as a person reads it.
        is_shared: whether it is in a database that several machines can use.
        fence: who evaluates by this store: then no transaction is committed that does not hold the lease. None for
            those who write without evaluating.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self.place = place
        self.is_shared = engine.dialect.name != "sqlite"
        self.fence: UUID | None = None
        self._engine = engine
        self._writing = writing(engine)
        self._lock = Lock()
        self._recent = RecentEvents()
        self._memory: Memory | None = None

    @contextmanager
    def transaction(self, now: datetime) -> Generator[LedgerBook]:
        """A unit of work: what is written to the book is committed at the end, or, after an exception, not at all.

        Parameters:
            now: the time that is written with receipts and changes.

        Raises:
            LedgerLocked: another process held the ledger for longer than the time limit.
            LeaseLost: another evaluator works on the ledger now; nothing is written.
            LedgerError: it cannot be written.
        """
        with self._lock, explained(self.place):
            # What a transaction noted that was not committed must not be remembered.
            memory, self._memory = self._memory, None
            with self._writing.begin() as connection:
                self._confirm(connection)
                book = LedgerBook(connection, now, self._recent, memory)
                yield book
                book.flush()
            self._memory = book.memory
            self._recent.keep(book.journal.appended)

    @contextmanager
    def writes(self) -> Generator[Connection]:
        """A connection in a transaction that writes, for what needs no book. Errors are those of `transaction`."""
        with self._lock, explained(self.place), self._writing.begin() as connection:
            self._confirm(connection)
            yield connection

    @contextmanager
    def beside(self) -> Generator[Connection]:
        """A connection in a transaction for the lease alone. On Postgres it waits for no other one of this store."""
        waiting = nullcontext() if self.is_shared else self._lock
        with waiting, explained(self.place), self._writing.begin() as connection:
            yield connection

    def _confirm(self, connection: Connection) -> None:
        if self.fence is not None:
            confirm(connection, self.fence)
