"""States of the fold for reads: each is opened for one read, and thrown away afterwards."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, select

from assetflow.core.freshness.state import FreshnessSource
from assetflow.core.rules.state import State
from assetflow.ledger.fold.freshness_source import FEW
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.read.compared_tables import ComparedTables, KnownGraph
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.tables import LEDGER

_LAST_EVENT = select(LEDGER.c.last_event)


class QueueSource(LedgerSource):
    """The tables, for a state that is asked for queues only: they have nothing to do with freshness."""

    def freshness(self) -> FreshnessSource:
        return FreshnessSource()


class States:
    """Opens states for the reads that need all rules.

    Attributes:
        connect: opens a connection for a read without a state.
    """

    def __init__(self, connect: Connect) -> None:
        self.connect = connect
        self._known = KnownGraph()

    @contextmanager
    def open(self, now: datetime | None = None, *, assets: Collection[str] | None = ()) -> Generator[State]:
        """Open a state on the ledger as it is at one moment.

        Parameters:
            now: the time at which something would be recorded; `None` if nothing would.
            assets: the URIs of the assets that will be asked for, if they are many; `None` for all that are compared.
                Those without keys are read together.
        """
        with self.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ")
            source = _Source(connection, self._known)
            state = State(source)
            state.begin(connection.execute(_LAST_EVENT).scalar_one() + 1, now)
            if assets is None or len(assets) > FEW:
                graph = state.freshness.graph
                uris = graph.compared() if assets is None else graph.with_inputs(assets)
                source.tables.read_ahead(uris)
                state.names.load(uris)
            yield state


class _Source(LedgerSource):
    def __init__(self, connection: Connection, known: KnownGraph) -> None:
        super().__init__(connection)
        self.tables = ComparedTables(connection, known)

    def freshness(self) -> FreshnessSource:
        return self.tables
