"""The version of a ledger's tables: made, brought up to date, or refused."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from assetflow.errors import LedgerVersion
from assetflow.ledger.version import VERSION

VERSION_TABLE = "ledger_version"
_LOCK = 6_170_215


def current_version(connection: Connection) -> str | None:
    """The version of the tables in a database; none if there are none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))


def upgrade(connection: Connection, *, place: str) -> None:
    """Make the tables, or bring them to this program's version, in the transaction of the connection.

    Raises:
        LedgerVersion: a newer program wrote them.
    """
    if connection.dialect.name == "postgresql":
        # Two programs that start at once: on SQLite the second has waited when its transaction began.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    version = current_version(connection)
    _refuse_newer(version, place)
    if version != VERSION:
        _migrate(connection)


def check(connection: Connection, *, place: str) -> None:
    """Refuse a database whose tables are not of this program's version.

    Raises:
        LedgerVersion: there are none, or they are older or newer.
    """
    version = current_version(connection)
    if version is None:
        raise LedgerVersion("the database holds no ledger", where=place, fix="Start the evaluator once, it makes one")
    _refuse_newer(version, place)
    if version != VERSION:
        raise LedgerVersion(
            f"the ledger has version {version}, this assetflow reads version {VERSION}",
            where=place,
            fix="Start the evaluator of this assetflow once, it brings the ledger up to date",
        )


def _refuse_newer(version: str | None, place: str) -> None:
    if version is not None and version > VERSION:
        raise LedgerVersion(
            f"the ledger has version {version}, this assetflow knows versions up to {VERSION}",
            where=place,
            fix="Update assetflow",
        )


def _migrate(connection: Connection) -> None:
    # Imported where it is needed: tasks read ledgers, and alembic takes longer to import than they take to read.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
