"""The tables of chapter 8 for reads: the graph of flows is kept between them, and many assets are read together."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from threading import Lock
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, exists, func, select

from assetflow.core.freshness.graph import DataGraph, Resolve, TokensOf
from assetflow.core.freshness.records import Item, ItemUpdate
from assetflow.core.rules.state import State
from assetflow.ledger.fold.freshness_source import FEW, NEWEST_OF_ITEMS
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.freshness_tables import ITEM
from assetflow.ledger.sql.rows import ITEM_UPDATES
from assetflow.ledger.sql.tables import ALIAS_LINK, ASSET, ASSET_NAME, LEDGER, NO_KEY

# All that the graph of flows follows from: `rewritten` changes with the consumers; names and links are only added.
_AGE = select(
    LEDGER.c.rewritten,
    select(func.count()).select_from(ASSET_NAME).scalar_subquery(),
    select(func.count()).select_from(ALIAS_LINK).scalar_subquery(),
)
_HAS_KEYS = exists().where(ITEM.c.uri == ASSET.c.uri, ITEM.c.partition_key != NO_KEY)
_WITH_KEYS = select(ASSET.c.uri).where(in_values(ASSET.c.uri, "uris"), _HAS_KEYS)
_NEWEST = NEWEST_OF_ITEMS.where(in_values(ITEM.c.uri, "uris"), ITEM.c.partition_key == NO_KEY)


@dataclass
class KnownGraph:
    """The graph of all flows as of the last read that needed it: with thousands of flows it takes half a second."""

    lock: Lock = field(default_factory=Lock)
    age: Row[Any] | None = None
    graph: DataGraph | None = None


class ComparedTables(LedgerSource):
    """Reads what chapter 8 knows, as it is at one moment."""

    def __init__(self, connection: Connection, known: KnownGraph) -> None:
        super().__init__(connection)
        self._known = known
        # The newest updates of assets without keys that were read together; `None` for those without any.
        self._plain: dict[str, ItemUpdate | None] = {}

    def read_ahead(self, uris: Collection[str]) -> None:
        """Read the newest updates of those of these assets that have no keys, in two statements."""
        keyed = set(self._scalars(_WITH_KEYS, uris=uris))
        plain = [uri for uri in uris if uri not in keyed]
        updates = map(ITEM_UPDATES.read, self._rows(_NEWEST, uris=plain))
        self._plain = dict.fromkeys(plain) | {update.item.uri: update for update in updates}

    def track(self, makers: Mapping[str, Mapping[UUID, int]]) -> None:
        """Write nothing: with the newest update, a state that is thrown away knows enough of an asset."""

    def whole_graph(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        known = self._known
        age = self.connection.execute(_AGE).one()
        with known.lock:
            if known.graph is None or known.age != age:
                known.graph, known.age = super().whole_graph(resolve, tokens_of), age
            return known.graph.copy(resolve, tokens_of)

    def newest(self, items: Collection[Item]) -> Iterable[ItemUpdate]:
        known = [self._plain[item.uri] for item in items if item.key is None and item.uri in self._plain]
        others = [item for item in items if item.uri not in self._plain]
        return chain((each for each in known if each is not None), super().newest(others))

    def newest_of(self, uri: str, until: datetime | None = None) -> ItemUpdate | None:
        return self._plain[uri] if until is None and uri in self._plain else super().newest_of(uri, until)

    def keys(self, uri: str, most: int | None = None) -> Collection[str]:
        return () if uri in self._plain else super().keys(uri, most)

    def count_keys(self, uri: str) -> int:
        return 0 if uri in self._plain else super().count_keys(uri)

    def changed(self, uri: str, after: int) -> Iterable[Item]:
        if uri not in self._plain:
            return super().changed(uri, after)
        newest = self._plain[uri]
        return () if newest is None or newest.sequence <= after else (Item(uri),)


_LAST_EVENT = select(LEDGER.c.last_event)


class QueueSource(LedgerSource):
    """The tables, for a state that is asked for queues only: they have nothing to do with freshness."""

    def graph(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        return DataGraph((), resolve, tokens_of)


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
            source = ComparedTables(connection, self._known)
            state = State(source)
            state.begin(connection.execute(_LAST_EVENT).scalar_one() + 1, now)
            if assets is None or len(assets) > FEW:
                graph = state.freshness.graph
                uris = graph.compared() if assets is None else graph.with_inputs(assets)
                source.read_ahead(uris)
                state.names.load(uris)
            yield state
