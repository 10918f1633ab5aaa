"""Statements over many rows, which are given as tuples.

SQLAlchemy converts parameters row by row and value by value. `Bulk` converts the values of a column together. On
SQLite, the driver then executes the statement for each row; on Postgres, it is executed once, over arrays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, cast
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Integer,
    String,
    Table,
    Text,
    and_,
    bindparam,
    column,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType


class Number(TypeDecorator[int]):
    """A 64-bit integer; on SQLite the type that can be an alias of the row id."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Integer() if dialect.name == "sqlite" else BigInteger())


class _Text(UserDefinedType[Any]):
    """A value as text. Plain functions convert it, which is faster than `TypeDecorator`: most columns are so."""

    spec = "TEXT"
    write: Callable[[Any], str | None]
    read: Callable[[Any], Any]

    def get_col_spec(self, **kw: Any) -> str:  # noqa: ARG002
        return self.spec

    def bind_processor(self, dialect: Dialect) -> Any:  # noqa: ARG002
        return self.write

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:  # noqa: ARG002
        return self.read


class Stored(_Text):
    """A value of the core as JSON text; `None` is null.

    Parameters:
        to_json, from_json: turn the value into JSON data, and back.
    """

    cache_ok = True

    def __init__(self, to_json: Callable[[Any], object], from_json: Callable[[Any], object]) -> None:
        self.to_json = to_json
        self.from_json = from_json

    def write(self, value: object) -> str | None:
        # Most tuples are empty.
        return None if value is None else "[]" if value == () else _json_to_text(self.to_json(value))

    def read(self, text: str | None) -> object:
        return None if text is None else self.from_json(_json_from_text(text))


def stored(kind: Any) -> Stored:
    """Return the type of a column with values of a kind that pydantic can read and write."""
    adapter = cache(lambda: TypeAdapter[Any](kind))
    return Stored(lambda value: adapter().dump_python(value, mode="json"), lambda data: adapter().validate_python(data))


def json_text(value: object) -> str:
    """Return a value as JSON text without white space."""
    return _ENCODER.encode(value)


# Most values are empty, and encoding them takes longer than these comparisons.
def _json_to_text(value: object) -> str:
    if not value:
        if value == {}:
            return "{}"
        if value in ((), []):
            return "[]"
    return json_text(value)


def _json_from_text(value: str | None) -> object:
    if value == "{}":
        return {}
    return [] if value == "[]" else json.loads(value or "null")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    if isinstance(value, UUID):
        return value.hex
    raise TypeError(f"{value!r} is not JSON data")


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_plain)


# A transaction writes the same time into most of its rows.
@lru_cache(maxsize=256)
def _moment_to_text(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat(timespec="microseconds")


class UtcTime(_Text):
    """A time in UTC as text of fixed width, so that text order is time order."""

    cache_ok = True
    spec = "VARCHAR(32)"
    write = staticmethod(_moment_to_text)

    @staticmethod
    def read(value: str | None) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


class JsonText(_Text):
    """JSON data as ASCII text, which can hold every text of JSON, including NUL and lone surrogates."""

    cache_ok = True
    write = staticmethod(_json_to_text)
    read = staticmethod(_json_from_text)


class KeyText(_Text):
    """A key as text, which can be part of a primary key. The empty text stands for `None`."""

    cache_ok = True
    spec = "VARCHAR"

    @staticmethod
    def write(key: str | None) -> str:
        return "" if key is None else key

    @staticmethod
    def read(text: str | None) -> str | None:
        return text or None


# SQLite ends a text of a JSON list at its first NUL. So NUL, and U+0001 itself, go as two characters and are put back.
_NUL, _ONE = "\x01a", "\x01b"
_TEXT = "replace(replace(value, char(1, 97), char(0)), char(1, 98), char(1))"


class ValueList(TypeDecorator[list[Any]]):
    """A list of values of one column type: JSON on SQLite, an array on Postgres."""

    impl = Text
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else ARRAY(self.item))

    def process_bind_param(self, value: Iterable[Any] | None, dialect: Dialect) -> Any:
        values = list(value or ())
        if dialect.name != "sqlite":
            return values
        return json_text([_without_nul(each or "") for each in values] if _is_text(self.item) else values)


class in_values(FunctionElement[Any]):  # noqa: N801 (it reads as an operator)
    """True if the column's value is in the list that is given as parameter `name`.

    The list is one parameter of any length, so the statement is the same for any number of values.
    """

    inherit_cache = True

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        self.is_text = _is_text(column.type)
        super().__init__(column, bindparam(name, type_=ValueList(column.type)))


@compiles(in_values, "sqlite")
def _in_values_on_sqlite(element: in_values, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(part, **kw) for part in element.clauses)
    value = _TEXT if element.is_text else "value"
    return f"{column} IN (SELECT {value} FROM json_each({values}))"


@compiles(in_values, "postgresql")
def _in_values_on_postgres(element: in_values, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(part, **kw) for part in element.clauses)
    return f"{column} = ANY ({values})"


class text_at(FunctionElement[Any]):  # noqa: N801 (it reads as a function)
    """The text at a path in a column of JSON text: `text_at(column, "flow_run", "name")`."""

    inherit_cache = False
    type = Text()

    def __init__(self, column: Column[Any], *path: str) -> None:
        self.path = path
        super().__init__(column)


@compiles(text_at, "sqlite")
def _text_at_on_sqlite(element: text_at, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_extract({compiler.process(element.clauses, **kw)}, '$.{'.'.join(element.path)}')"


@compiles(text_at, "postgresql")
def _text_at_on_postgres(element: text_at, compiler: SQLCompiler, **kw: Any) -> str:
    return f"(({compiler.process(element.clauses, **kw)})::json #>> '{{{','.join(element.path)}}}')"


class number_at(FunctionElement[Any]):  # noqa: N801 (it reads as a function)
    """The whole number under a key of a column of JSON text: `number_at(column, "uri")`, the key as parameter `uri`."""

    inherit_cache = True
    type = BigInteger()

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        super().__init__(column, bindparam(name, type_=Text()))


@compiles(number_at, "sqlite")
def _number_at_on_sqlite(element: number_at, compiler: SQLCompiler, **kw: Any) -> str:
    column, key = (compiler.process(part, **kw) for part in element.clauses)
    return f"(SELECT value FROM json_each({column}) WHERE key = {key})"


@compiles(number_at, "postgresql")
def _number_at_on_postgres(element: number_at, compiler: SQLCompiler, **kw: Any) -> str:
    column, key = (compiler.process(part, **kw) for part in element.clauses)
    return f"(({column})::json ->> {key})::bigint"


def insert_into(table: Table, dialect: str) -> Any:
    """Return an INSERT for a database, which has `excluded`, `on_conflict_do_nothing` and `on_conflict_do_update`.

    Parameters:
        dialect: the database's name in SQLAlchemy. Its drivers are imported only here, because that takes long.
    """
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert
    return insert(table)


def begins_with(column: Any, text: str) -> ColumnElement[bool]:
    """Return the condition that a column's text begins with `text`, in the same case."""
    return and_(column >= text, func.substr(column, 1, len(text)) == text)


def _is_text(kind: TypeEngine[Any]) -> bool:
    # SQLModel's type for text wraps SQLAlchemy's.
    return isinstance(kind.impl_instance if isinstance(kind, TypeDecorator) else kind, String | KeyText)


def _without_nul(text: str) -> str:
    return text.replace("\x01", _ONE).replace("\x00", _NUL)


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
            converted = (values[at] if convert is None else map(convert, values[at]) for at, convert in places)
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
