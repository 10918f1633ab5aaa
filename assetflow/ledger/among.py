"""`column IN (many values)` as one parameter, so that a statement is the same for any number of values.

On SQLite the parameter is a JSON list, on Postgres an array: neither has a limit, and nothing is built anew per call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Dialect, Text, bindparam
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine

from assetflow.ledger.types import json_text


class Several(TypeDecorator[list[Any]]):
    """Several values of one column type."""

    impl = Text
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else postgresql.ARRAY(self.item))

    def process_bind_param(self, value: Iterable[Any] | None, dialect: Dialect) -> Any:
        values = list(value or ())
        return json_text(values) if dialect.name == "sqlite" else values


class among(FunctionElement[Any]):  # noqa: N801 (it reads as an operator)
    """Whether a column's value is one of those in the parameter `name`."""

    inherit_cache = True

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        super().__init__(column, bindparam(name, type_=Several(column.type)))


@compiles(among, "sqlite")
def _on_sqlite(element: among, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(part, **kw) for part in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"


@compiles(among, "postgresql")
def _on_postgres(element: among, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(part, **kw) for part in element.clauses)
    return f"{column} = ANY ({values})"
