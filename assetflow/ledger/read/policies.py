"""How fresh assets with a policy are, and how their states changed. Contract 8.11 to 8.15."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from assetflow.core.freshness.asset_freshness import AssetFreshness, StateChange, Unjudged
from assetflow.ledger.fold.policy_rows import (
    CHANGE_COLUMNS,
    POLICY_KEY,
    POLICY_VALUES,
    change_from_row,
    policy_from_row,
)
from assetflow.ledger.read.judging import read_unjudged
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.freshness_tables import POLICY, POLICY_CHANGE
from assetflow.ledger.sql.tables import CONSUMER, DECISION

_POLICIES = select(*POLICY_KEY, *POLICY_VALUES).order_by(POLICY.c.uri)
_LAST = DECISION.alias("last_decision")
_LAST_OF_MAKER = select(func.max(_LAST.c.number)).where(_LAST.c.consumer == POLICY_CHANGE.c.maker).scalar_subquery()
CHANGES = select(
    *CHANGE_COLUMNS,
    POLICY_CHANGE.c.posted,
    POLICY_CHANGE.c.stored,
    CONSUMER.c.name,
    CONSUMER.c.deployment_id,
    DECISION.c.flow_run_id,
).select_from(
    POLICY_CHANGE.outerjoin(CONSUMER, CONSUMER.c.id == POLICY_CHANGE.c.maker).outerjoin(
        DECISION, DECISION.c.number == _LAST_OF_MAKER
    )
)


class PolicyReader:
    """Reads how fresh assets are. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    def all(self) -> list[AssetFreshness]:
        """Return all assets with a policy, by URI."""
        with self._connect() as connection:
            rows = connection.execute(_POLICIES).all()
            unjudged = read_unjudged(connection) if rows else None
            return [_freshness(row, unjudged) for row in rows]

    def of_asset(self, uri: str) -> AssetFreshness | None:
        """Return how fresh an asset is; `None` if it has no policy."""
        with self._connect() as connection:
            row = connection.execute(_POLICIES.where(POLICY.c.uri == uri)).one_or_none()
            return None if row is None else _freshness(row, read_unjudged(connection))

    def changes(self, *, uri: str | None = None, before: int | None = None, limit: int = 100) -> list[StateChange]:
        """Return changes of states, newest first. To page on, give the number of the last one as `before`."""
        query = CHANGES.order_by(POLICY_CHANGE.c.number.desc()).limit(limit)
        if uri is not None:
            query = query.where(POLICY_CHANGE.c.uri == uri)
        if before is not None:
            query = query.where(POLICY_CHANGE.c.number < before)
        with self._connect() as connection:
            return changes_of(connection, query)


def changes_of(connection: Connection, query: Any) -> list[StateChange]:
    """Return the changes of states that a query of the form of `CHANGES` finds."""
    return [_change(row) for row in connection.execute(query)]


def _freshness(row: Sequence[Any], unjudged: Unjudged | None) -> AssetFreshness:
    uri, record = policy_from_row(row)
    return AssetFreshness.of(uri, record, record.chain[-1][0] if record.chain else None, unjudged)


def _change(row: Sequence[Any]) -> StateChange:
    *of, posted, stored, maker, deployment_id, flow_run = row
    number, change = change_from_row(of)
    return StateChange(number, change, maker, deployment_id, flow_run, posted, stored)
