"""SQL expressions that SQLite and Postgres write differently."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
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
    Dialect,
    Integer,
    String,
    Table,
    Text,
    and_,
    bindparam,
    func,
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
        return None if value is None else _json_to_text(self.to_json(value))

    def read(self, text: str | None) -> object:
        return None if text is None else self.from_json(_json_from_text(text))


def stored(kind: Any) -> Stored:
    """Return the type of a column with values of a kind that pydantic can read and write."""
    adapter = cache(lambda: TypeAdapter[Any](kind))
    return Stored(lambda value: adapter().dump_python(value, mode="json"), lambda data: adapter().validate_python(data))


def json_text(value: object) -> str:
    """Return a value as JSON text without white space."""
    return _ENCODER.encode(value)


# A transaction writes the same time into most of its rows.
@lru_cache(maxsize=256)
def _moment_to_text(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat(timespec="microseconds")


def _moment_from_text(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _key_to_text(key: str | None) -> str:
    return "" if key is None else key


def _key_from_text(text: str | None) -> str | None:
    return text or None


# Most values are empty, and encoding them takes longer than these comparisons.
def _json_to_text(value: object) -> str:
    if value == {}:
        return "{}"
    return "[]" if value == () else json_text(value)


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


class UtcTime(_Text):
    """A time in UTC as text of fixed width, so that text order is time order."""

    cache_ok = True
    spec = "VARCHAR(32)"
    write = staticmethod(_moment_to_text)
    read = staticmethod(_moment_from_text)


class JsonText(_Text):
    """JSON data as ASCII text, which can hold every text of JSON, including NUL and lone surrogates."""

    cache_ok = True
    write = staticmethod(_json_to_text)
    read = staticmethod(_json_from_text)


class KeyText(_Text):
    """A key as text, which can be part of a primary key. The empty text stands for `None`."""

    cache_ok = True
    spec = "VARCHAR"
    write = staticmethod(_key_to_text)
    read = staticmethod(_key_from_text)


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
