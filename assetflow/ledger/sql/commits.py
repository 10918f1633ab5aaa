"""Hear of commits to the ledger, whichever process makes them.

SQLite has a number that changes when another connection has committed, and reading it costs microseconds. Postgres
sends a notification with the commit. A pooler in transaction mode does not deliver it: readers look at the tables
themselves now and then.
"""

from __future__ import annotations

import selectors
import socket
from threading import Event, Lock
from typing import Any, Protocol

from sqlalchemy import URL, Connection, text

from assetflow.errors import LedgerError
from assetflow.ledger.sql.engine import open_engine, place_of
from assetflow.ledger.sql.failures import explained

LOOK_EVERY = 0.03
CHANNEL = "assetflow_ledger"
_NOTIFY = text(f"NOTIFY {CHANNEL}")
_LISTEN = text(f"LISTEN {CHANNEL}")


class CommitListener(Protocol):
    """Hears of the commits that follow its creation, on a connection of its own."""

    def wait(self) -> bool:
        """Return True when something was committed since the last call, and False when the listener is closed.

        It may return True for nothing, and once for several commits.

        Raises:
            LedgerError: the ledger cannot be read; make another listener.
        """
        ...

    def close(self) -> None:
        """End a call of `wait` in another thread, and close the connection."""
        ...


def listen(url: URL) -> CommitListener:
    """Return a listener for the ledger at a URL.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    return _SqliteListener(url) if url.get_backend_name() == "sqlite" else _PostgresListener(url)


def notify(connection: Connection) -> None:
    """Tell listeners of this transaction when it is committed."""
    if connection.dialect.name == "postgresql":
        connection.execute(_NOTIFY)


class _SqliteListener:
    def __init__(self, url: URL) -> None:
        self._place = place_of(url)
        self._engine = open_engine(url, read_only=True)
        self._closed = Event()
        self._lock = Lock()
        with explained(self._place):
            # Not an SQLAlchemy connection: it would begin a transaction, and within one the number does not change.
            self._connection: Any = self._engine.raw_connection()
        self._version = self._read()

    def wait(self) -> bool:
        with self._lock:
            while not self._closed.wait(LOOK_EVERY):
                version = self._read()
                if version != self._version:
                    self._version = version
                    return True
        return False

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._connection.close()
            self._engine.dispose()

    def _read(self) -> int:
        try:
            return self._connection.driver_connection.execute("PRAGMA data_version").fetchone()[0]
        except self._engine.dialect.loaded_dbapi.Error as error:
            raise _unreadable(error, self._place) from error


class _PostgresListener:
    def __init__(self, url: URL) -> None:
        self._place = place_of(url)
        self._engine = open_engine(url, read_only=True).execution_options(isolation_level="AUTOCOMMIT")
        self._lock = Lock()
        self._is_closed = False
        self._closing, self._woken = socket.socketpair()
        try:
            with explained(self._place):
                self._connection = self._engine.connect()
                self._connection.execute(_LISTEN)
        except BaseException:
            self._dispose()
            raise
        self._driver: Any = self._connection.connection.driver_connection

    def wait(self) -> bool:
        with self._lock, selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            selector.register(self._driver.fileno(), selectors.EVENT_READ)
            while not self._is_closed:
                selector.select()
                if not self._is_closed and self._has_notifications():
                    return True
        return False

    def close(self) -> None:
        self._is_closed = True
        self._closing.send(b"\0")
        with self._lock:
            self._connection.invalidate()
            self._connection.close()
            self._dispose()

    def _has_notifications(self) -> bool:
        try:
            return bool(list(self._driver.notifies(timeout=0)))
        except self._engine.dialect.loaded_dbapi.Error as error:
            raise _unreadable(error, self._place) from error

    def _dispose(self) -> None:
        self._engine.dispose()
        self._closing.close()
        self._woken.close()


def _unreadable(error: Exception, place: str) -> LedgerError:
    said = str(error).strip().splitlines()
    return LedgerError(
        f"commits of other processes are not heard: {said[0] if said else repr(error)}",
        where=place,
        fix="Nothing: it is tried again, and the ledger is read now and then meanwhile",
    )
