"""The version of a ledger's tables: made, brought up to date, or refused."""

from __future__ import annotations

from pathlib import Path
from socket import gethostname
from typing import Any, cast

from sqlalchemy import Connection, inspect, text

from assetflow.errors import EvaluatorRunning, LedgerVersion
from assetflow.ledger import lease
from assetflow.ledger.tables import Base
from assetflow.ledger.version import VERSION

VERSION_TABLE = "ledger_version"
_LOCK = 6_170_215
_UPGRADE = "Stop its evaluators, then run `assetflow database upgrade`"


def current_version(connection: Connection) -> str | None:
    """The version of the tables in a database; none if there are none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))


def prepare(connection: Connection, *, place: str) -> None:
    """Let a ledger be opened: make the tables in an empty database, on SQLite also bring older ones up to date.

    On Postgres, where several machines may be at work, an upgrade is somebody's decision.

    Raises:
        LedgerVersion: they are newer than this program, or older and on Postgres.
        EvaluatorRunning: they are older, and an evaluator works with them.
    """
    version = current_version(connection)
    if version != VERSION:
        if version is not None and connection.dialect.name != "sqlite":
            check(connection, place=place)
        upgrade(connection, place=place)


def upgrade(connection: Connection, *, place: str) -> str | None:
    """Make the tables, or bring them to this program's version, in the transaction of the connection.

    Two upgrades at once are done one after the other: the second finds nothing to do.

    Returns:
        The version before; none if there were no tables.

    Raises:
        LedgerVersion: a newer program wrote them.
        EvaluatorRunning: an evaluator works with them.
    """
    if connection.dialect.name == "postgresql":
        # On SQLite the second one has waited when its transaction began.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    version = current_version(connection)
    _refuse_newer(version, place)
    if version is not None and version != VERSION:
        _refuse_while_evaluated(connection, place)
    if version != VERSION:
        _migrate(connection)
    return version


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
            f"the ledger has version {version}, this assetflow needs version {VERSION}", where=place, fix=_UPGRADE
        )


def differences(connection: Connection) -> list[str]:
    """What distinguishes the tables from those that this version has, in words; tables of others do not count."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    options = {"version_table": VERSION_TABLE, "include_name": _is_ours}
    context = MigrationContext.configure(connection, opts=options)
    return [_in_words(each) for each in compare_metadata(context, Base.metadata)]


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    return kind != "table" or name in Base.metadata.tables


def _in_words(difference: Any) -> str:
    """One of alembic's differences: what would have to be done to the tables."""
    if isinstance(difference, list):
        return ", ".join(map(_in_words, cast("list[Any]", difference)))
    what, *about = cast("tuple[Any, ...]", difference)
    names = (getattr(each, "name", each) for each in about)
    return f"{str(what).replace('_', ' ')}: " + " ".join(str(name) for name in names if name is not None)


def _refuse_newer(version: str | None, place: str) -> None:
    if version is not None and version > VERSION:
        raise LedgerVersion(
            f"the ledger has version {version}, this assetflow knows versions up to {VERSION}",
            where=place,
            fix="Update assetflow",
        )


def _refuse_while_evaluated(connection: Connection, place: str) -> None:
    held = lease.read_lease(connection)
    if held is not None and lease.is_held(connection, held, lease.clock(connection), gethostname()):
        raise EvaluatorRunning(
            f"the ledger cannot be upgraded while an evaluator works on it: {lease.told(held)}",
            where=place,
            fix=_UPGRADE,
        )


def _migrate(connection: Connection) -> None:
    # Imported where it is needed: tasks read ledgers, and alembic takes longer to import than they take to read.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
