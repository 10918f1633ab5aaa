"""Queries in databases, by SQLAlchemy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime, time
from typing import Any, cast

from sqlalchemy import NullPool, Row, create_engine, text
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, ResourceClosedError, SQLAlchemyError

from assetflow.core.json_data import fit_json
from assetflow.core.values.addresses import source_of_url
from assetflow.core.values.table_triggers import SQLTrigger
from assetflow.core.watchers.table_changes import Change, Found
from assetflow.errors import WatchingFailed
from assetflow.watching.looks import Polled

MOST_CHARACTERS = 10_000
_PLAIN = (str, int, float, bool, type(None))


class SQLQuery(Polled):
    """The value of a query; see `Polled`. Each look has a connection of its own, so none is left in the database.

    Raises:
        WatchingFailed: the address is not a database address, or its driver is not installed.
    """

    def __init__(self, trigger: SQLTrigger, url: str) -> None:
        self.source = f"{source_of_url(url, {})} {trigger.query}"
        self.label = trigger.describe()
        self._query = text(trigger.query)
        self._connection: Any = None
        try:
            self._engine = create_engine(url, poolclass=NullPool)
        except (ModuleNotFoundError, NoSuchModuleError) as error:
            raise WatchingFailed(
                f"the driver of the database is not installed: {error}",
                where=self.label,
                fix='Install it, for PostgreSQL with pip install "assetflow[postgres]"',
            ) from error
        except (SQLAlchemyError, TypeError) as error:
            raise WatchingFailed("SQLAlchemy does not understand the address", where=self.label) from error

    def cancel(self) -> None:
        """Cancel the query, if the driver can: psycopg, oracledb and SQLite do."""
        connection = self._connection
        cancels = (getattr(connection, name, None) for name in ("cancel_safe", "cancel", "interrupt"))
        if cancel := cast("Callable[[], object] | None", next(filter(None, cancels), None)):
            # Whatever fails here: people are shown the look that does not answer.
            with suppress(Exception):
                cancel()

    def look(self, cursor: Mapping[str, Any] | None) -> Found:
        """Return one change if the value is not that of the cursor."""
        value = self._value()
        # A value that is refused must stop neither the cursor nor the update after it.
        known = fit_json(value)
        if cursor is None:
            return Found((_change(0, value, {"value": value}),), {"value": known, "count": 0})
        if known == cursor["value"]:
            return Found((), cursor)
        # A value that was there before is a new update, so changes are counted.
        count = cast(int, cursor["count"]) + 1
        extra = {"value": value, "before": cursor["value"]}
        return Found((_change(count, value, extra),), {"value": known, "count": count})

    def _value(self) -> object:
        try:
            with self._engine.connect() as connection:
                self._connection = connection.connection.driver_connection
                if self._engine.dialect.name == "sqlite":
                    # Python's driver begins no transaction for DDL that could be rolled back.
                    connection.exec_driver_sql("pragma query_only = on")
                row = connection.execute(self._query).first()
        except ResourceClosedError as error:
            raise WatchingFailed("the query returns no rows", where=self.label, fix="Write a SELECT") from error
        except DBAPIError as error:
            raise WatchingFailed(f"the database refuses the query: {error.orig}", where=self.label) from error
        except SQLAlchemyError as error:
            raise WatchingFailed(f"the query fails: {error}", where=self.label) from error
        value = _as_json(row)
        if len(json.dumps(value)) > MOST_CHARACTERS:
            raise WatchingFailed(
                f"the value has more than {MOST_CHARACTERS:,} characters", where=self.label, fix="Select less"
            )
        return value


def _change(count: int, value: object, extra: Mapping[str, object]) -> Change:
    return Change(f"{count}|{json.dumps(value)}", extra, None, None, f"value {value}")


def _as_json(row: Row[Any] | None) -> object:
    cells = [_cell(each) for each in row] if row is not None else [None]
    return cells[0] if len(cells) == 1 else cells


def _cell(value: object) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
