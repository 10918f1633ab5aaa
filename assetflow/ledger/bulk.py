"""Many rows in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite

_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def upsert(connection: Connection, table: Table, *, key: Sequence[Column[Any]], values: Sequence[str]) -> Insert:
    """An insert that replaces the `values` of a row whose `key` is there already."""
    statement = _INSERTS[connection.dialect.name](table)
    changes = {name: statement.excluded[name] for name in values}
    return statement.on_conflict_do_update(index_elements=[column.name for column in key], set_=changes)
