"""Column types that mean the same on SQLite and on Postgres."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast
from uuid import UUID

from sqlalchemy import BigInteger, Dialect, Integer
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType


class Number(TypeDecorator[int]):
    """A 64-bit integer; on SQLite the type that can be an alias of the row id."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Integer() if dialect.name == "sqlite" else BigInteger())


# The next two convert in plain functions, which is faster than `TypeDecorator`: most columns have one of these types.
class UtcTime(UserDefinedType[datetime]):
    """A time in UTC as text of fixed width, so that text order is time order."""

    cache_ok = True

    def get_col_spec(self, **kw: Any) -> str:  # noqa: ARG002
        return "VARCHAR(32)"

    def bind_processor(self, dialect: Dialect) -> Any:  # noqa: ARG002
        return _moment_to_text

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:  # noqa: ARG002
        return _moment_from_text


class JsonText(UserDefinedType[object]):
    """JSON data as ASCII text, which can hold every text of JSON, including NUL and lone surrogates."""

    cache_ok = True

    def get_col_spec(self, **kw: Any) -> str:  # noqa: ARG002
        return "TEXT"

    def bind_processor(self, dialect: Dialect) -> Any:  # noqa: ARG002
        return _json_to_text

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:  # noqa: ARG002
        return _json_from_text


def json_text(value: object) -> str:
    """Return a value as JSON text without white space."""
    return _ENCODER.encode(value)


# A transaction writes the same time into most of its rows.
@lru_cache(maxsize=256)
def _moment_to_text(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat(timespec="microseconds")


def _moment_from_text(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


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
