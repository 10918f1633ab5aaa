"""A ledger that another version of assetflow has written."""

import sqlite3
from contextlib import closing
from pathlib import Path

from assetflow.ledger.schema import VERSION_TABLE


def write_version(place: Path, version: str) -> None:
    """Let a ledger on SQLite have this version."""
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = ?", (version,))


def read_version(place: Path) -> str:
    """Return the version of a ledger on SQLite."""
    with closing(sqlite3.connect(place)) as connection:
        (found,) = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
        return str(found)
