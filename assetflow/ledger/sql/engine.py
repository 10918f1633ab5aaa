"""Open the database of the ledger, SQLite in a file or Postgres, and hear of commits to it."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from sqlite3 import SQLITE_BUSY, OperationalError, register_adapter
from sqlite3 import Connection as SqliteConnection
from threading import Event, Lock
from time import monotonic, sleep
from typing import Any, Protocol

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError

from assetflow.errors import LedgerError
from assetflow.ledger.sql.failures import explained
from assetflow.settings import get_settings, keep_private, make_private, make_private_folder

# Opens a connection for one read.
Connect = Callable[[], AbstractContextManager[Connection]]

APPLICATION = "assetflow"
LOCK_TIMEOUT = 10.0
OLDEST_POSTGRES = 14
SECONDS_TO_CONNECT = 10
# SQLite moves its log into the database, and begins the log anew, when the log has grown to this size: 4,000 pages.
LOG_BYTES = 4000 * 4096
SECONDS_TO_STAND_STILL = 60
_PRAGMAS = (
    "foreign_keys = ON",
    "synchronous = FULL",
    "cache_size = -32000",
    "temp_store = MEMORY",
    f"wal_autocheckpoint = {LOG_BYTES // 4096}",
    # A reader that stays open keeps the log from beginning anew. When it has gone, the log shrinks again.
    f"journal_size_limit = {LOG_BYTES}",
)
# A server whose machine vanished sends nothing; by default, it is given up after a quarter of an hour or two hours.
_NOTICE_GONE: dict[str, object] = {
    "tcp_user_timeout": 20_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
# For a value that is neither a number nor a text, the driver looks for ways to adapt it. For `None`, of which most rows
# have several, that takes longer than writing it.
register_adapter(type(None), dict[None, None]().get)
_ADDRESSES = (
    "Write sqlite:////var/lib/assetflow/ledger.db or postgresql+psycopg://host:5432/database, with user:password@ "
    "before the host; in a password, write %40 for @, %2F for /, %3A for : and %25 for %"
)


def default_place() -> str | Path:
    """Return the path or the URL of the ledger in the settings."""
    settings = get_settings()
    return settings.database_url or settings.home / "ledger.db"


def ledger_url(place: str | Path) -> URL:
    """Return the URL for a path or an SQLAlchemy URL.

    Raises:
        LedgerError: it is neither, or names a database on which the ledger does not run.
    """
    if isinstance(place, Path) or "://" not in place:
        return _in_file(place)
    try:
        url = make_url(place)
    except (ArgumentError, ValueError) as error:
        # The message does not repeat the address: it may contain a password.
        raise LedgerError("the address of the database cannot be read", fix=_ADDRESSES) from error
    if "@" in (url.host or ""):
        raise LedgerError("the address of the database cannot be read: it has more than one @", fix=_ADDRESSES)
    backend = url.get_backend_name()
    if backend == "postgresql":
        return url
    named = "SQLite without a file" if backend == "sqlite" else place_of(url)
    if backend == "sqlite" and url.database and not url.database.startswith((":memory:", "file:")):
        return _in_file(url.database)
    raise LedgerError(f"the ledger runs on SQLite and Postgres, not on {named}", fix=_ADDRESSES)


def _in_file(place: str | Path) -> URL:
    """Return the URL of a SQLite file. A relative path begins in the current folder."""
    return URL.create("sqlite", database=str(Path(place).expanduser().absolute()))


def place_of(url: URL) -> str:
    """Return the address for people to read, without password and options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    named = URL.create(url.drivername, url.username, host=url.host, port=url.port, database=url.database)
    return named.render_as_string()


def make_place(url: URL) -> None:
    """Make the folder and the file of a ledger on SQLite, readable by their owner only, also if the file exists.

    Raises:
        LedgerError: the folder cannot be made.
    """
    if url.get_backend_name() != "sqlite":
        return
    file = Path(str(url.database))
    folder = file.parent
    try:
        make_private_folder(folder)
    except OSError as error:
        raise LedgerError(
            f"the folder {folder} of the ledger cannot be made: {error.strerror}",
            fix="Set ASSETFLOW_HOME to a folder that can be written",
        ) from error
    # SQLite has a better message for a file that cannot be made. Files that it adds get the rights of this one.
    with suppress(OSError):
        make_private(file)
    for suffix in ("-wal", "-shm"):
        keep_private(file.with_name(file.name + suffix))


def open_engine(
    url: URL, *, read_only: bool = False, lock_timeout: float = LOCK_TIMEOUT, application: str = APPLICATION
) -> Engine:
    """Return an engine on the database of the ledger.

    Parameters:
        read_only: refuse all writes.
        lock_timeout: how long to wait for another writer, in seconds.
        application: the name of the sessions in Postgres.

    Raises:
        LedgerError: the driver is not installed, or there is something else than a file.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, read_only, lock_timeout)
    return _postgres(url, read_only, lock_timeout, application)


def _postgres(url: URL, read_only: bool, lock_timeout: float, application: str) -> Engine:
    given: dict[str, object] = {"connect_timeout": SECONDS_TO_CONNECT, "application_name": application, **_NOTICE_GONE}
    try:
        engine = create_engine(
            # Whatever driver the address names, psycopg is the one that is installed.
            url.set(drivername="postgresql+psycopg"),
            connect_args={name: value for name, value in given.items() if name not in url.query},
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
        )
    except ModuleNotFoundError as error:
        raise LedgerError(
            "the driver for Postgres is not installed", where=place_of(url), fix="Install assetflow[postgres]"
        ) from error
    statements = [
        f"SET lock_timeout = {int(lock_timeout * 1000)}",
        # A process that hangs, or is unreachable, must not keep its locks forever.
        f"SET idle_in_transaction_session_timeout = {SECONDS_TO_STAND_STILL * 1000}",
    ]
    if read_only:
        statements.append("SET default_transaction_read_only = on")

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        check_version(connection.info.server_version, place_of(url))
        connection.execute("; ".join(statements))
        connection.commit()

    return engine


def check_version(number: int, place: str) -> None:
    """Refuse a Postgres that is too old.

    Parameters:
        number: the server's version number, such as 150020 for 15.20.

    Raises:
        LedgerError
    """
    if number // 10_000 < OLDEST_POSTGRES:
        raise LedgerError(
            f"this is Postgres {number // 10_000}, and the ledger needs {OLDEST_POSTGRES} or newer",
            where=place,
            fix="Use a newer server",
        )


def _sqlite(url: URL, read_only: bool, lock_timeout: float) -> Engine:
    file = Path(str(url.database))
    if file.exists() and not file.is_file() and not file.is_dir():
        # SQLite would wait for the other end of a pipe.
        raise LedgerError("the ledger is not a file", where=str(file), fix="Set ASSETFLOW_HOME to another folder")
    if read_only:
        url = url.set(database=Path(str(url.database)).as_uri(), query={"mode": "ro", "uri": "true"})
    engine = create_engine(url, connect_args={"timeout": lock_timeout, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: SqliteConnection, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        # Without this, the driver begins transactions itself. `_begin` below is the only place that does.
        connection.isolation_level = None
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        if not read_only:
            _turn_on_wal(connection, lock_timeout)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _turn_on_wal(connection: SqliteConnection, lock_timeout: float) -> None:
    """Turn on the write-ahead log. While another program does the same, SQLite refuses without waiting."""
    deadline = monotonic() + lock_timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except OperationalError as error:
            if error.sqlite_errorcode != SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(0.01)
        else:
            return


def writing(engine: Engine) -> Engine:
    """Return the engine for transactions that write. On SQLite these take the write lock when they begin."""
    return engine.execution_options(writes=True)


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
