"""What becomes of the keys of an asset: which of them consumers wait for, and which are made now or failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Connection, bindparam, case, exists, func, or_, select

from assetflow.core.explain.pending_keys import awaited_keys, targets_of_keys
from assetflow.core.partitions import PartitionMapper
from assetflow.core.rules.ended_runs import FAILED
from assetflow.core.shapes import called, shape
from assetflow.core.values.conditions import Token
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.read import Topic
from assetflow.ledger.records import AssetRecord
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.tables import ASSET, CONSUMER, CONSUMER_TOKEN, DECISION, EVENT, NO_KEY, PENDING

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


class PartitionStateReader(Topic):
    """Reads the states of keys."""

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
        tokens = frozenset(
            (
                Token("uri", asset.uri),
                *(Token("name", each) for each in asset.names),
                *(Token("alias", each) for each in asset.aliases),
            )
        )
        with self._connect() as connection:
            mappers = _mappers(connection, tokens)
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


def _mappers(connection: Connection, tokens: frozenset[Token]) -> Mapping[int, PartitionMapper]:
    """Return the mappers for an asset with these tokens, by the ids of the consumers that have pending partitions."""
    ids = connection.scalars(_WITH_PENDING_KEYS, {"values": [each.value for each in tokens]}).all()
    return {
        each.id: each.schedule.partitioning.mapper_for(tokens)
        for each in LedgerSource(connection).consumers(ids)
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
        found = self._scalars(query.order_by(_KEY.desc() if newest_first else _KEY).limit(limit))
        return [each for each in found if each is not None]

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
        with self._connect() as connection:
            rows = connection.execute(select(place, func.count()).group_by(place))
            found = {row[0]: row[1] for row in rows}
        return [found.get(number, 0) for number in range(len(bounds))]
