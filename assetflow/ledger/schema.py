"""Make, upgrade, check or refuse the tables of a ledger, by their version."""

from __future__ import annotations

from pathlib import Path
from socket import gethostname
from typing import Any, cast

from sqlalchemy import Connection, inspect, text

from assetflow.core.values.words import shown
from assetflow.errors import EvaluatorRunning, LedgerError, LedgerVersion
from assetflow.ledger import lease
from assetflow.ledger.migrations import VERSION
from assetflow.ledger.sql.freshness_tables import Base

VERSION_TABLE = "ledger_version"
MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 6_170_215
_UPGRADE = "Stop its evaluators and watchers, then run `assetflow database upgrade`"


def current_version(connection: Connection) -> str | None:
    """Return the version of the tables in a database, or `None` if it has no tables of a ledger."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))


def prepare(connection: Connection, *, place: str) -> None:
    """Make the tables in an empty database; on SQLite, also upgrade older ones.

    On Postgres, several machines may use the ledger, so an operator upgrades it.

    Raises:
        LedgerVersion: the tables are newer than this program, or older and on Postgres.
        EvaluatorRunning: the tables are older, and an evaluator is running on them.
    """
    version = current_version(connection)
    if version != VERSION:
        if version is not None and connection.dialect.name != "sqlite":
            check(connection, place=place)
        upgrade(connection, place=place)


def upgrade(connection: Connection, *, place: str) -> str | None:
    """Make the tables, or upgrade them to this program's version, in the transaction of the connection.

    Of two upgrades at the same time, the second waits for the first and then finds nothing to do.

    Returns:
        The version before, or `None` if there were no tables.

    Raises:
        LedgerVersion: a newer program wrote them.
        EvaluatorRunning: an evaluator is running on them.
        LedgerError: on SQLite, the file has tables of another program.
    """
    if connection.dialect.name == "postgresql":
        # On SQLite, the second one has waited when its transaction began.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    version = current_version(connection)
    _refuse_newer(version, place)
    if version is not None and version != VERSION:
        _refuse_while_evaluated(connection, place)
    if version is None and connection.dialect.name == "sqlite" and (others := inspect(connection).get_table_names()):
        raise LedgerError(
            f"the database has tables that do not belong to a ledger, such as {shown(others[0])}",
            where=place,
            fix="Give the ledger a database of its own",
        )
    if version != VERSION:
        _migrate(connection)
    return version


def check(connection: Connection, *, place: str) -> None:
    """Refuse a database whose tables do not have this program's version.

    Raises:
        LedgerVersion: there are no tables, or they are older or newer.
    """
    version = current_version(connection)
    if version is None:
        raise LedgerVersion("the database holds no ledger", where=place, fix="`assetflow evaluator start` makes one")
    _refuse_newer(version, place)
    if version != VERSION:
        raise LedgerVersion(
            f"the ledger has version {version}, this assetflow needs version {VERSION}", where=place, fix=_UPGRADE
        )


def differences(connection: Connection) -> list[str]:
    """Return in words how the tables differ from those of this version. Tables of other programs do not count."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    options = {"version_table": VERSION_TABLE, "include_name": _is_ours}
    context = MigrationContext.configure(connection, opts=options)
    return [_in_words(each) for each in compare_metadata(context, Base.metadata)]


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    return kind != "table" or name in Base.metadata.tables


def _in_words(difference: Any) -> str:
    """Return in words a difference that alembic found: what would have to be done to the tables."""
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
    for role, who in ((lease.Role.EVALUATOR, "an evaluator"), (lease.Role.WATCHERS, "`assetflow watcher`")):
        held = lease.read_lease(connection, role)
        if held is not None and lease.is_held(connection, held, lease.clock(connection), gethostname()):
            raise EvaluatorRunning(
                f"the ledger cannot be upgraded while {who} is running on it: {lease.told(held)}",
                where=place,
                fix=_UPGRADE,
            )


def _migrate(connection: Connection) -> None:
    # Imported here because tasks read ledgers, and importing alembic takes longer than reading.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
