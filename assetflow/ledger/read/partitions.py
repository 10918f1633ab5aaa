"""What becomes of the keys of an asset: which of them consumers wait for, and which are made now or failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from threading import Lock
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection, Row, bindparam, case, exists, func, or_, select

from assetflow.core.explain.conditions import awaited_keys, targets_of_keys
from assetflow.core.freshness.graph import DataGraph, Resolve, TokensOf
from assetflow.core.freshness.records import Item, ItemUpdate
from assetflow.core.partitions import PartitionMapper
from assetflow.core.rules.ended_runs import FAILED
from assetflow.core.rules.state import State
from assetflow.core.shapes import called, shape
from assetflow.core.values.conditions import Token
from assetflow.ledger.fold.freshness_source import FEW, NEWEST_OF_ITEMS
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.read import Topic
from assetflow.ledger.records import AssetRecord
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.freshness_tables import ITEM
from assetflow.ledger.sql.rows import ITEM_UPDATES
from assetflow.ledger.sql.tables import (
    ALIAS_LINK,
    ASSET,
    ASSET_NAME,
    CONSUMER,
    CONSUMER_TOKEN,
    DECISION,
    EVENT,
    LEDGER,
    NO_KEY,
    PENDING,
)

RunOfKey = Literal["running", "failed"]

_WITH_PENDING_KEYS = (
    select(CONSUMER.c.id)
    .where(
        CONSUMER.c.removed_at.is_(None),
        exists().where(CONSUMER_TOKEN.c.consumer == CONSUMER.c.id, in_values(CONSUMER_TOKEN.c.value, "values")),
        exists().where(PENDING.c.consumer == CONSUMER.c.id, PENDING.c.target_key != NO_KEY),
    )
    .order_by(CONSUMER.c.id)
)
_QUEUED = select(PENDING.c.consumer, PENDING.c.target_key, PENDING.c.uri, PENDING.c.source_key).where(
    in_values(PENDING.c.consumer, "consumers"), in_values(PENDING.c.target_key, "targets")
)
_MAKERS = select(CONSUMER.c.id).where(in_values(CONSUMER.c.deployment_id, "deployments"))
_NEWEST = (
    select(func.max(DECISION.c.number))
    .where(DECISION.c.consumer.in_(_MAKERS), in_values(DECISION.c.target_key, "keys"))
    .group_by(DECISION.c.target_key)
)
_RUNS = select(DECISION.c.target_key, DECISION.c.ended).where(
    DECISION.c.number.in_(_NEWEST),
    or_(DECISION.c.ended.is_(None), DECISION.c.run_state.in_(FAILED), DECISION.c.status == "undeliverable"),
)
_UPDATED = (
    select(EVENT.c.partition_key, func.max(EVENT.c.recorded))
    .where(EVENT.c.uri == bindparam("uri"), in_values(EVENT.c.partition_key, "keys"))
    .group_by(EVENT.c.partition_key)
)


def _mappers(connection: Connection, tokens: frozenset[Token]) -> Mapping[int, PartitionMapper]:
    """Return the mappers for an asset with these tokens, by the ids of the consumers that have pending partitions."""
    ids = connection.scalars(_WITH_PENDING_KEYS, {"values": [each.value for each in tokens]}).all()
    return {
        number: each.schedule.partitioning.mapper_for(tokens)
        for number, each in LedgerSource(connection).consumers(ids)
        if each.schedule.partitioning is not None and each.schedule.tokens & tokens
    }


_KEY = EVENT.c.partition_key


@shape
class PartitionRecord:
    """A partition of an asset: how many events it has, and its newest one."""

    key: str = field(metadata=called("partition_key"))
    events: int
    last_event: int
    last_update: datetime


class PartitionReader(Topic):
    """Reads partitions.

    Keys are ordered as texts.
    """

    def page(self, uri: str, *, after: str = "", limit: int = 100) -> list[PartitionRecord]:
        """Return the partitions of an asset by key, from the first key after `after` on."""
        totals = (
            select(_KEY, func.count().label("count"), func.max(EVENT.c.sequence).label("newest"))
            .where(EVENT.c.uri == uri, after < _KEY)
            .group_by(_KEY)
            .order_by(_KEY)
            .limit(limit)
            .subquery()
        )
        query = select(totals, EVENT.c.occurred).join(EVENT, EVENT.c.sequence == totals.c.newest)
        return [PartitionRecord(*row) for row in self._rows(query.order_by(totals.c.partition_key))]

    def having(self, key: str, *, limit: int) -> list[str]:
        """Return the URIs of assets with an event of this partition key, in the order of the URIs."""
        # The index begins with the URI, so it is asked for each asset.
        has_key = exists(
            select(EVENT.c.sequence).where(EVENT.c.uri == ASSET.c.uri, EVENT.c.partition_key == bindparam("key"))
        )
        query = select(ASSET.c.uri).where(has_key).order_by(ASSET.c.uri).limit(limit)
        return list(self._scalars(query, {"key": key}))

    def keys(
        self,
        uri: str,
        *,
        since: str = "",
        after: str = "",
        until: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[str]:
        """Return the partition keys of an asset: from `since`, or after `after`, up to and including `until`."""
        query = select(_KEY).where(EVENT.c.uri == uri, after < _KEY, since <= _KEY).distinct()
        if until is not None:
            query = query.where(until >= _KEY)
        return list(self._scalars(query.order_by(_KEY.desc() if newest_first else _KEY).limit(limit)))

    def count(self, uri: str) -> int:
        """Return the number of partition keys of an asset."""
        query = select(func.count(_KEY.distinct())).where(EVENT.c.uri == uri, _KEY.is_not(None))
        return self._scalar(query)

    def counts_from(self, uri: str, bounds: Sequence[str]) -> list[int]:
        """Return the number of keys between each two neighbours of `bounds`, two or more, and from the last one on."""
        keys = select(_KEY).where(EVENT.c.uri == uri, bounds[0] <= _KEY).distinct()
        key = keys.subquery().c.partition_key
        number = case(*((key < bound, number) for number, bound in enumerate(bounds[1:])), else_=len(bounds) - 1)
        place = select(number.label("place")).subquery().c.place
        found: dict[int, int] = dict(self._rows(select(place, func.count()).group_by(place)))
        return [found.get(number, 0) for number in range(len(bounds))]

    def runs(self, uri: str, deployments: Collection[UUID], keys: Collection[str]) -> dict[str, RunOfKey]:
        """Return the keys that are made now, and those whose latest run failed and that nothing has updated since.

        Parameters:
            deployments: the flows that make the asset.
        """
        with self._connect() as connection:
            rows = connection.execute(_RUNS, {"deployments": list(deployments), "keys": list(keys)}).all()
            failed: dict[str, datetime] = {key: ended for key, ended in rows if ended is not None}
            updated: dict[str, datetime] = {}
            if failed:
                found = connection.execute(_UPDATED, {"uri": uri, "keys": list(failed)}).all()
                updated = {row[0]: row[1] for row in found}
        states: dict[str, RunOfKey] = {key: "running" for key, ended in rows if ended is None}
        for key, ended in failed.items():
            if key not in updated or updated[key] < ended:
                states[key] = "failed"
        return states

    def awaited(self, asset: AssetRecord, absent: Collection[str]) -> set[str]:
        """Return those of some absent keys of an asset that pending partitions of consumers wait for."""
        with self._connect() as connection:
            mappers = _mappers(connection, frozenset(asset.tokens))
            keys_of = {mapper: targets_of_keys(mapper, absent) for mapper in set(mappers.values())}
            targets = list({target for found in keys_of.values() for target in found})
            rows = connection.execute(_QUEUED, {"consumers": list(mappers), "targets": targets}).all()
        received: defaultdict[int, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for consumer, target, uri, key in rows:
            queued = received[consumer][target]
            if uri == asset.uri:
                queued.add(key)
        found = (awaited_keys(mappers[each], keys_of[mappers[each]], received[each]) for each in received)
        return set[str]().union(*found)


# All that the graph of flows follows from: `rewritten` changes with the consumers; names and links are only added.
_AGE = select(
    LEDGER.c.rewritten,
    select(func.count()).select_from(ASSET_NAME).scalar_subquery(),
    select(func.count()).select_from(ALIAS_LINK).scalar_subquery(),
)
_HAS_KEYS = exists().where(ITEM.c.uri == ASSET.c.uri, ITEM.c.partition_key != NO_KEY)
_WITH_KEYS = select(ASSET.c.uri).where(in_values(ASSET.c.uri, "uris"), _HAS_KEYS)
_NEWEST_UPDATES = NEWEST_OF_ITEMS.where(in_values(ITEM.c.uri, "uris"), ITEM.c.partition_key == NO_KEY)


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
        updates = map(ITEM_UPDATES.read, self._rows(_NEWEST_UPDATES, uris=plain))
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

    def newest(self, items: Collection[Item]) -> Iterable[tuple[Item, ItemUpdate]]:
        known = [(item, self._plain[item.uri]) for item in items if item.key is None and item.uri in self._plain]
        others = [item for item in items if item.uri not in self._plain]
        return chain(((item, update) for item, update in known if update is not None), super().newest(others))

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


class StateTopic(Topic):
    """The reads about one topic that need all rules.

    Parameters:
        states: opens states.
    """

    def __init__(self, states: States) -> None:
        super().__init__(states.connect)
        self._states = states
