"""Databases on the Postgres server of this machine, each for one test or one session."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from sqlalchemy import create_engine, make_url, text

SERVER = "postgresql+psycopg://root@127.0.0.1:5432"


@contextmanager
def new_database(locale: str = "") -> Iterator[str]:
    """The address of an empty database, dropped at the end.

    Parameters:
        locale: the ICU locale by which it orders texts; that of the server by default.
    """
    name = f"assetflow_test_{os.getpid()}_{uuid4().hex[:8]}"
    # No test needs its data after a failure of the machine: a commit does not wait for the disk.
    options = f" TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '{locale}'" if locale else ""
    on_server(f"CREATE DATABASE {name}{options}", f"ALTER DATABASE {name} SET synchronous_commit = off")
    try:
        yield f"{SERVER}/{name}"
    finally:
        on_server(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def chosen_database() -> Iterator[str | None]:
    """What TEST_DATABASE says: the address of an empty database for `postgres`, none for a SQLite file."""
    if os.environ.get("TEST_DATABASE", "sqlite") == "sqlite":
        yield None
        return
    with new_database() as url:
        yield url


@contextmanager
def closed(url: str) -> Iterator[None]:
    """Within the block nobody gets to this database, and who was connected is not any more."""
    name = make_url(url).database
    on_server(
        f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
    )
    try:
        yield
    finally:
        on_server(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def on_server(*statements: str) -> None:
    """Run statements that belong to no database: those about databases and roles."""
    engine = create_engine(f"{SERVER}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()
