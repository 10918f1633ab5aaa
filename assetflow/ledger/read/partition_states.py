"""What becomes of the keys of an asset: which of them consumers wait for, and which are made now or failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Connection, bindparam, exists, func, or_, select

from assetflow.core.condition_tree import Token
from assetflow.core.explanation.awaited_keys import awaited_keys, targets_of_keys
from assetflow.core.partitions import PartitionMapper
from assetflow.core.run_changes import FAILED
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.records import AssetRecord
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import CONSUMER, CONSUMER_TOKEN, DECISION, EVENT, NO_KEY, PENDING

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


class PartitionStateReader:
    """Reads the states of keys. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

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
