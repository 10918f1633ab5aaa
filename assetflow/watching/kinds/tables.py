"""Tables: SQL asks for rows; of Delta and Iceberg, nothing is read but the log, by deltalake and pyiceberg."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime, time
from functools import cached_property
from importlib import import_module
from typing import Any, cast

from sqlalchemy import NullPool, Row, create_engine, text
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, ResourceClosedError, SQLAlchemyError

from assetflow.core.json_data import fit_json
from assetflow.core.values.addresses import source_of_url, with_variables, without_user
from assetflow.core.values.table_triggers import DeltaTableTrigger, IcebergTableTrigger, SQLTrigger
from assetflow.core.watchers.table_changes import (
    Change,
    Found,
    Snapshot,
    Table,
    cursor_at,
    existing,
    first,
    gap,
    read_commit,
    since,
)
from assetflow.errors import WatchingFailed
from assetflow.watching.kinds import needing
from assetflow.watching.looks import Polled

# Versions that are recorded together at most.
AT_ONCE = 100
NO_VERSION = -1

# The cursor: the version, and the size and the time of its commit in the log, `None` if that was cut off.
Cursor = Mapping[str, Any]


class DeltaLog(Polled):
    """The log of a Delta table; see `Polled`."""

    def __init__(self, trigger: DeltaTableTrigger, uri: str) -> None:
        self.source = f"delta {without_user(uri).rstrip('/')}"
        self.label = trigger.describe()
        self._uri = uri
        self._deltalake = import_deltalake(self.label)
        self._file = cast(Any, import_module("pyarrow.fs")).FileType.File

    def look(self, cursor: Cursor | None) -> Found:
        """Return the versions after that of the cursor."""
        try:
            return self._first() if cursor is None else self._next(cursor)
        except self._deltalake.exceptions.TableNotFoundError as error:
            raise WatchingFailed(f"there is no Delta table: {_words(error)}", where=self.label) from error
        except (OSError, ValueError, self._deltalake.exceptions.DeltaError) as error:
            raise WatchingFailed(f"the log of the table cannot be read: {_words(error)}", where=self.label) from error

    def _first(self) -> Found:
        try:
            version, table = self._latest()
        except self._deltalake.exceptions.TableNotFoundError:
            # The next look, at once, fails too, and says so; when the table is there, its first version is new.
            return Found((), {"version": NO_VERSION, "commit": None}, is_all=False)
        return Found((existing(version, table),), self._cursor(version))

    def _next(self, cursor: Cursor) -> Found:
        version, commit = cast(int, cursor["version"]), self._commit(cursor["version"])
        if commit is not None and cursor["commit"] not in (None, commit):
            # The table was dropped and created again.
            return self._catch_up(cursor)
        changes: list[Change] = []
        last = version
        while last < version + AT_ONCE and (text := self._text(last + 1)) is not None:
            last += 1
            changes += [change] if (change := read_commit(last, text)) else []
        if last > version:
            return Found(changes, self._cursor(last), is_all=last < version + AT_ONCE)
        return self._catch_up(cursor) if commit is None else Found((), cursor)

    def _catch_up(self, cursor: Cursor) -> Found:
        """Return one update if versions are missing between that of the cursor and the latest one. Contract 10.6."""
        version, table = self._latest()
        now = self._cursor(version)
        is_known = version == cursor["version"] and now["commit"] in (None, cursor["commit"])
        return Found(() if is_known else (gap(version, table),), now)

    def _latest(self) -> tuple[int, str]:
        """Return the latest version and the id of the table."""
        table = self._deltalake.DeltaTable(self._uri)
        return table.version(), str(table.metadata().id)

    def _cursor(self, version: int) -> Cursor:
        return {"version": version, "commit": self._commit(version)}

    @cached_property
    def _store(self) -> Any:
        return self._deltalake.fs.DeltaStorageHandler(self._uri)

    def _commit(self, version: int) -> list[object] | None:
        """Return size and time of a commit; `None` if the log does not have it."""
        (found,) = self._store.get_file_info([_name(version)])
        return [found.size, found.mtime_ns] if found.type == self._file else None

    def _text(self, version: int) -> bytes | None:
        try:
            return self._store.open_input_file(_name(version)).read()
        except FileNotFoundError:
            return None


def _name(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def _words(error: Exception) -> str:
    """Return what deltalake says, in one line and without colours."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|↳", "", str(error)).split())


def import_deltalake(where: str) -> Any:
    """Return deltalake with what is used of it.

    Raises:
        WatchingFailed: it is missing.
    """
    with needing("deltalake", "delta", where):
        for name in ("deltalake.exceptions", "deltalake.fs", "pyarrow.fs"):
            import_module(name)
    return import_module("deltalake")


class IcebergTable(Polled):
    """An Iceberg table in its catalog; see `Polled`.

    Raises:
        WatchingFailed: pyiceberg is missing, or does not know the catalog.
    """

    def __init__(self, trigger: IcebergTableTrigger) -> None:
        self.source = f"iceberg {trigger.catalog} {trigger.table}"
        self.label = trigger.describe()
        self._table = trigger.table
        properties = {name: with_variables(value, os.environ) for name, value in trigger.properties.items()}
        try:
            self._exceptions = cast(Any, import_module("pyiceberg.exceptions"))
            self._catalog = cast(Any, import_module("pyiceberg.catalog")).load_catalog(trigger.catalog, **properties)
        except ImportError as error:
            raise WatchingFailed(
                f"pyiceberg is not installed, or what it needs for this catalog: {error}",
                where=self.label,
                fix='pip install "assetflow[iceberg]"',
            ) from error
        except Exception as error:
            raise WatchingFailed(f"the catalog cannot be opened: {error}", where=self.label) from error

    def look(self, cursor: Mapping[str, Any] | None) -> Found:
        """Return the snapshots after that of the cursor."""
        try:
            table = _read(self._catalog.load_table(self._table).metadata)
        except (self._exceptions.NoSuchTableError, self._exceptions.NoSuchNamespaceError) as error:
            if cursor is None:
                # The next look, at once, fails too, and says so; when the table is there, its first snapshot is new.
                return Found((), cursor_at(None), is_all=False)
            raise WatchingFailed(str(error), where=self.label, fix="Check the name of the table") from error
        except Exception as error:
            raise WatchingFailed(f"the table cannot be read: {error}", where=self.label) from error
        return first(table) if cursor is None else since(table, cursor["snapshot"])


def _read(metadata: Any) -> Table:
    snapshots = [
        Snapshot(
            each.snapshot_id,
            each.parent_snapshot_id,
            each.timestamp_ms,
            each.summary.operation.value if each.summary else "",
            dict(each.summary.additional_properties) if each.summary else {},
        )
        for each in metadata.snapshots
    ]
    current = metadata.current_snapshot_id
    return Table(str(metadata.table_uuid), snapshots, None if current in (None, -1) else current)


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
