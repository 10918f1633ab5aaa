"""The outbox of changed states of freshness policies: what Prefect's log has to have. Contract 8.13."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import update

from assetflow.core.freshness.telling import StateChange
from assetflow.ledger.read.policies import CHANGES, changes_of
from assetflow.ledger.sql.freshness_tables import POLICY_CHANGE
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.write.store import Store

_OF_NUMBERS = update(POLICY_CHANGE).where(in_values(POLICY_CHANGE.c.number, "numbers"))
_TO_TELL = CHANGES.where(POLICY_CHANGE.c.stored.is_(None)).order_by(POLICY_CHANGE.c.number)


class FreshnessWriter:
    """Writes what Prefect was told.

    All methods raise `LedgerLocked` and `LedgerError` if the ledger cannot be written.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def to_tell(self, limit: int) -> list[StateChange]:
        """Return the changes of states that Prefect's log was not seen to have, oldest first."""
        with self._store.reads() as connection:
            return changes_of(connection, _TO_TELL.limit(limit))

    def posted(self, numbers: Collection[int], now: datetime) -> None:
        """Store that the events of these changes are sent to Prefect now."""
        with self._store.writes() as connection:
            connection.execute(_OF_NUMBERS.values(posted=now), {"numbers": numbers})

    def stored(self, numbers: Collection[int], now: datetime) -> None:
        """Store that Prefect's log has the events of these changes."""
        with self._store.writes() as connection:
            connection.execute(_OF_NUMBERS.values(stored=now), {"numbers": numbers})
