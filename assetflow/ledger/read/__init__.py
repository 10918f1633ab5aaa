"""The reads of a ledger, topic by topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Executable, Select, or_

from assetflow.ledger.sql.bulk import begins_with
from assetflow.ledger.sql.engine import Connect

Given = Mapping[str, object]


class Topic:
    """The reads about one topic. All of them raise `LedgerError` if the ledger cannot be read.

    Parameters:
        connect: opens a connection for one read.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    def _rows(self, query: Executable, given: Given | None = None) -> Sequence[Any]:
        """Return the rows that a query finds; `given` are the values of its parameters."""
        with self._connect() as connection:
            return connection.execute(query, given).all()

    def _scalars(self, query: Executable, given: Given | None = None) -> Sequence[Any]:
        """Return the first column of the rows that a query finds."""
        with self._connect() as connection:
            return connection.scalars(query, given).all()

    def _scalar(self, query: Executable, given: Given | None = None) -> Any:
        """Return the first column of the first row that a query finds, or `None`."""
        with self._connect() as connection:
            return connection.scalar(query, given)


def newest_first(query: Select[Any], number: ColumnElement[int], before: int | None, limit: int) -> Select[Any]:
    """Return the query for a page of rows, the greatest numbers first.

    Parameters:
        before: the number of the last row of the page before; `None` for the first page.
    """
    page = query.order_by(number.desc()).limit(limit)
    return page if before is None else page.where(number < before)


def named(column: ColumnElement[str], texts: Sequence[str], prefixes: Sequence[str]) -> Sequence[ColumnElement[bool]]:
    """Return the conditions that a column contains one of the texts, in any case, and begins with one of the prefixes.

    Prefixes match in the same case. In a text, `%` and `_` are wildcards. Without texts or prefixes, their condition
    is left out.
    """
    contains = [column.ilike(f"%{text}%", escape="\\") for text in texts]
    begins = [begins_with(column, text) for text in prefixes]
    return [or_(*conditions) for conditions in (contains, begins) if conditions]


def given(*conditions: tuple[ColumnElement[Any], object]) -> list[ColumnElement[bool]]:
    """Return that each of these columns has its value, without those whose value is `None`."""
    return [column == value for column, value in conditions if value is not None]
