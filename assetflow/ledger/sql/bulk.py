"""Statements over many rows, which are given as tuples.

SQLAlchemy converts parameters row by row and value by value. `Bulk` converts the values of a column together. On
SQLite, the driver then executes the statement for each row; on Postgres, it is executed once, over arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    bindparam,
    column,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.sql.compiler import SQLCompiler

from assetflow.ledger.sql.functions import insert_into

# For each column, by name, the expression that stands for its value in the statement.
Given = Mapping[str, ColumnElement[Any]]
Rows = Sequence[tuple[Any, ...]]


class Bulk:
    """One statement over many rows, compiled once.

    Parameters:
        columns: the columns of the values of a row, in order; each name once.
        on_sqlite, on_postgres: make the statement from the expressions that stand for the values.
    """

    def __init__(
        self, columns: Sequence[Column[Any]], on_sqlite: Callable[[Given], Any], on_postgres: Callable[[Given], Any]
    ) -> None:
        self._columns = columns
        self._on_sqlite = on_sqlite
        self._on_postgres = on_postgres
        self._compiled: tuple[str, Sequence[tuple[int, Any]]] | None = None
        self._statement: Any = None

    def run(self, connection: Connection, rows: Rows) -> int:
        """Execute the statement once for all rows and return how many rows of the table changed.

        Do nothing for an empty list.
        """
        if not rows:
            return 0
        values = list(zip(*rows, strict=True))
        if connection.dialect.name == "sqlite":
            text, places = self._compiled or self._compile(connection.dialect)
            converted = (_converted(values[place], convert) for place, convert in places)
            done = connection.exec_driver_sql(text, list(zip(*converted, strict=True)))
        else:
            if self._statement is None:
                self._statement = self._on_postgres(_arrays(self._columns))
            arrays = {f"given_{each.name}": list(found) for each, found in zip(self._columns, values, strict=True)}
            done = connection.execute(self._statement, arrays)
        return done.rowcount

    def _compile(self, dialect: Dialect) -> tuple[str, Sequence[tuple[int, Any]]]:
        """Return the statement's text, and for each parameter the place in a row and the conversion of its value."""
        given = {each.name: bindparam(f"given_{each.name}", type_=each.type) for each in self._columns}
        compiled = cast(SQLCompiler, self._on_sqlite(given).compile(dialect=dialect))
        places = {f"given_{each.name}": place for place, each in enumerate(self._columns)}
        order = [places[name] for name in compiled.positiontup or ()]
        writers = [each.type.dialect_impl(dialect).bind_processor(dialect) for each in self._columns]
        self._compiled = compiled.string, [(place, writers[place]) for place in order]
        return self._compiled


def insert_rows(*columns: Column[Any]) -> Bulk:
    """Return the statement that inserts rows with values for these columns of a table."""
    return _inserting(columns, lambda statement: statement)


def upsert_rows(*columns: Column[Any], kept: Sequence[Column[Any]] = ()) -> Bulk:
    """Return the statement that inserts rows of `columns` and `kept`, or gives existing rows the values of `columns`.

    The primary key of the table, which is among `columns`, says whether a row exists.
    """

    def replacing(statement: Any) -> Any:
        changes = {each.name: statement.excluded[each.name] for each in columns if not each.primary_key}
        names = [each.name for each in columns if each.primary_key]
        if not changes:
            return statement.on_conflict_do_nothing(index_elements=names)
        return statement.on_conflict_do_update(index_elements=names, set_=changes)

    return _inserting((*columns, *kept), replacing)


def update_rows(*columns: Column[Any], **fixed: str) -> Bulk:
    """Return the statement that gives rows, which their primary keys name, new values, and all of them `fixed`."""

    def statement(given: Given) -> Any:
        rows = update(columns[0].table).where(*(each == given[each.name] for each in columns if each.primary_key))
        in_all: dict[str, Any] = {name: literal_column(f"'{value}'") for name, value in fixed.items()}
        return rows.values({each.name: given[each.name] for each in columns if not each.primary_key} | in_all)

    return Bulk(columns, statement, statement)


def delete_rows(*key: Column[Any]) -> Bulk:
    """Return the statement that deletes the rows with these keys."""

    def statement(given: Given) -> Any:
        return delete(key[0].table).where(*(each == given[each.name] for each in key))

    return Bulk(key, statement, statement)


def _inserting(columns: Sequence[Column[Any]], finish: Callable[[Any], Any]) -> Bulk:
    table = columns[0].table
    names = [each.name for each in columns]
    return Bulk(
        columns,
        lambda given: finish(insert_into(table, "sqlite").values(dict(given))),
        lambda given: finish(insert_into(table, "postgresql").from_select(names, select(*given.values()))),
    )


def _arrays(columns: Sequence[Column[Any]]) -> Given:
    """Return the columns of a table that Postgres makes from arrays, one array for each column."""
    arrays = (bindparam(f"given_{each.name}", type_=ARRAY(each.type, dimensions=1)) for each in columns)
    rows = func.unnest(*arrays).table_valued(*(column(each.name, each.type) for each in columns), name="given")
    table = rows.render_derived()
    return {each.name: table.c[each.name] for each in columns}


def _converted(values: Iterable[Any], convert: Callable[[Any], Any] | None) -> Iterable[Any]:
    return values if convert is None else map(convert, values)
