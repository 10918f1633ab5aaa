"""States of the fold for reads: each is opened for one read, and thrown away afterwards."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, func, select

from assetflow.core.freshness.graph import DataGraph, Resolve, TokensOf
from assetflow.core.freshness.state import FreshnessSource
from assetflow.core.rules.state import State
from assetflow.ledger.fold.freshness_source import FreshnessTables
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.tables import ALIAS_LINK, ASSET_NAME, LEDGER

_LAST_EVENT = select(LEDGER.c.last_event)
# All that the graph of flows follows from: `rewritten` changes with the consumers; names and links are only added.
_AGE = select(
    LEDGER.c.rewritten,
    select(func.count()).select_from(ASSET_NAME).scalar_subquery(),
    select(func.count()).select_from(ALIAS_LINK).scalar_subquery(),
)


class QueueSource(LedgerSource):
    """The tables, for a state that is asked for queues only: they have nothing to do with freshness."""

    def freshness(self) -> FreshnessSource:
        return FreshnessSource()


@dataclass
class KnownGraph:
    """The graph of all flows as of the last read that needed it: with thousands of flows it takes half a second."""

    lock: Lock = field(default_factory=Lock)
    age: Row[Any] | None = None
    graph: DataGraph | None = None


class States:
    """Opens states for the reads that need all rules.

    Attributes:
        connect: opens a connection for a read without a state.
    """

    def __init__(self, connect: Connect) -> None:
        self.connect = connect
        self._known = KnownGraph()

    @contextmanager
    def open(self, now: datetime | None = None) -> Generator[State]:
        """Open a state on the ledger as it is at one moment.

        Parameters:
            now: the time at which something would be recorded; `None` if nothing would.
        """
        with self.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ")
            state = State(_Source(connection, self._known))
            state.begin(connection.execute(_LAST_EVENT).scalar_one() + 1, now)
            yield state


class _Source(LedgerSource):
    def __init__(self, connection: Connection, known: KnownGraph) -> None:
        super().__init__(connection)
        self._known = known

    def freshness(self) -> FreshnessSource:
        return _Tables(self.connection, self._known)


class _Tables(FreshnessTables):
    def __init__(self, connection: Connection, known: KnownGraph) -> None:
        super().__init__(lambda: connection)
        self._known = known

    def track(self, makers: Mapping[str, Mapping[UUID, int]]) -> None:
        """Write nothing: with the newest update, a state that is thrown away knows enough of an asset."""

    def whole_graph(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        known = self._known
        age = self._connection().execute(_AGE).one()
        with known.lock:
            if known.graph is None or known.age != age:
                known.graph, known.age = super().whole_graph(resolve, tokens_of), age
            return known.graph.copy(resolve, tokens_of)
