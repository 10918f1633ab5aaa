"""Upgrade and check the database of a ledger, as an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection

from assetflow.errors import LedgerError
from assetflow.ledger import schema
from assetflow.ledger.ledger import begin_ledger
from assetflow.ledger.sql.engine import default_place, ledger_url, make_place, open_engine, place_of, writing
from assetflow.ledger.sql.failures import explained
from assetflow.ledger.version import VERSION

# How long to wait for another upgrade.
SECONDS_TO_WAIT = 600.0
MOST_FAULTS = 20

State = Literal["up to date", "older", "newer", "empty", "damaged"]


@dataclass(frozen=True)
class Upgraded:
    """The result of an upgrade.

    Attributes:
        place: the file or the address.
        before: the version before the upgrade; `None` if there was no ledger.
        after: the version after it.
    """

    place: str
    before: str | None
    after: str


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    Attributes:
        place: the file or the address.
        server: the name and the version of the database server.
        version: the version of the tables; `None` if there are no tables.
        needed: the version that this program needs.
        faults: what is wrong with the tables or their content, a sentence each.
    """

    place: str
    server: str
    version: str | None
    needed: str
    faults: Sequence[str]

    @property
    def state(self) -> State:
        if self.version is None:
            return "damaged" if self.faults else "empty"
        if self.version != self.needed:
            return "older" if self.version < self.needed else "newer"
        return "damaged" if self.faults else "up to date"


def upgrade(url_or_path: str | Path | None = None, *, now: datetime | None = None) -> Upgraded:
    """Make the tables of a ledger, or upgrade them to this program's version, completely or not at all.

    Parameters:
        url_or_path: as for `Ledger.open`.

    Raises:
        LedgerVersion: a newer program wrote them.
        EvaluatorRunning: an evaluator is running on them.
        LedgerError: they cannot be changed.
    """
    url = ledger_url(url_or_path if url_or_path is not None else default_place())
    place = place_of(url)
    make_place(url)
    engine = open_engine(url, lock_timeout=SECONDS_TO_WAIT)
    try:
        with explained(place), writing(engine).begin() as connection:
            before = schema.upgrade(connection, place=place)
            begin_ledger(connection, now or datetime.now(UTC))
    finally:
        engine.dispose()
    return Upgraded(place, before, VERSION)


def check(url_or_path: str | Path | None = None) -> Checked:
    """Check that the tables are those of this program, and, on SQLite, that their content is intact.

    Parameters:
        url_or_path: as for `Ledger.open`.

    Raises:
        LedgerError: the database cannot be read.
    """
    url = ledger_url(url_or_path if url_or_path is not None else default_place())
    place = place_of(url)
    if url.get_backend_name() == "sqlite" and not Path(place).exists():
        raise LedgerError("there is no ledger", where=place, fix="`assetflow database upgrade` makes one")
    engine = open_engine(url, read_only=True)
    try:
        with explained(place), engine.connect() as connection:
            version = schema.current_version(connection)
            faults = _faults_of_file(connection) if engine.dialect.name == "sqlite" else []
            if version == VERSION:
                faults += schema.differences(connection)
            return Checked(place, _server(connection), version, VERSION, faults)
    finally:
        engine.dispose()


def _server(connection: Connection) -> str:
    name = {"sqlite": "SQLite", "postgresql": "Postgres"}[connection.dialect.name]
    return f"{name} {'.'.join(map(str, connection.dialect.server_version_info or ()))}"


def _faults_of_file(connection: Connection) -> list[str]:
    said = [str(row[0]) for row in connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_FAULTS})")]
    if said != ["ok"]:
        return said
    rows = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(MOST_FAULTS)
    return [f"a row of {row[0]} refers to a row of {row[2]} that is not there" for row in rows]
