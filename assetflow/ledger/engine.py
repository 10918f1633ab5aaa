"""How the ledger's database is opened: SQLite in a file, or Postgres."""

from __future__ import annotations

from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from assetflow.errors import LedgerError
from assetflow.settings import get_settings

LOCK_TIMEOUT = 10.0


def default_place() -> str | Path:
    """Where the settings say that the ledger is."""
    settings = get_settings()
    return settings.database_url or settings.home / "ledger.db"


def ledger_url(place: str | Path) -> URL:
    """The address that a path or a SQLAlchemy URL means.

    Raises:
        LedgerError: it is neither, or a database that the ledger does not run on.
    """
    if isinstance(place, Path) or "://" not in place:
        return URL.create("sqlite", database=str(Path(place).expanduser().absolute()))
    try:
        url = make_url(place)
    except ArgumentError as error:
        raise LedgerError(f"{place!r} is no database address", fix="Write sqlite:////path/ledger.db") from error
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        raise LedgerError(
            f"the ledger cannot be at {url.render_as_string()}",
            fix="Give the path of a file, or an address that begins with postgresql+psycopg://",
        )
    return url


def place_of(url: URL) -> str:
    """The address as a person reads it, without the password."""
    return str(url.database) if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)


def open_engine(url: URL, *, read_only: bool = False, lock_timeout: float = LOCK_TIMEOUT) -> Engine:
    """An engine on the ledger's database.

    Parameters:
        read_only: nothing can be written through it.
        lock_timeout: how long to wait for another writer, in seconds.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, read_only, lock_timeout)
    engine = create_engine(url, pool_pre_ping=True)
    mode = "; SET default_transaction_read_only = on" if read_only else ""

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.execute(f"SET lock_timeout = {int(lock_timeout * 1000)}{mode}")
        connection.commit()

    return engine


def _sqlite(url: URL, read_only: bool, lock_timeout: float) -> Engine:
    if read_only:
        url = url.set(database=Path(str(url.database)).as_uri(), query={"mode": "ro", "uri": "true"})
    engine = create_engine(url, connect_args={"timeout": lock_timeout, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: SqliteConnection, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        # The driver would begin transactions at moments of its own choice; "begin" below is the only place.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -32000")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def writing(engine: Engine) -> Engine:
    """The same engine, for transactions that write: on SQLite they take the write lock when they begin."""
    return engine.execution_options(writes=True)
