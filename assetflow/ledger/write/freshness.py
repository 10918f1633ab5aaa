"""Try targets again; and the outbox of changed states, which Prefect's log has to have. Contract 8.7, 8.13."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import update

from assetflow.core.freshness.asset_freshness import StateChange
from assetflow.core.freshness.retrying import check_retry, retry
from assetflow.core.values.consumers import Decision
from assetflow.ledger.read.policies import CHANGES, changes_of
from assetflow.ledger.sql.freshness_tables import POLICY_CHANGE
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.write.consumers import find_consumer
from assetflow.ledger.write.store import Store

_OF_NUMBERS = update(POLICY_CHANGE).where(in_values(POLICY_CHANGE.c.number, "numbers"))
_TO_TELL = CHANGES.where(POLICY_CHANGE.c.stored.is_(None)).order_by(POLICY_CHANGE.c.number)


class FreshnessWriter:
    """Writes what is to be tried again, and what Prefect was told.

    All methods raise `LedgerLocked` and `LedgerError` if the ledger cannot be written.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def retry(self, consumer: int, key: str | None, now: datetime) -> list[Decision]:
        """Forget what an Eager or Lazy consumer tried and waived, and return the decisions of the pass that follows.

        Parameters:
            key: only of this target key; `None` for all targets.

        Raises:
            UnknownConsumer: no consumer has this id.
            InvalidCall: the consumer is neither Eager nor Lazy, or has no such key; `where` is `consumer` or `key`.
        """
        with self._store.transaction(now) as unit:
            book = unit.state.freshness
            retry(book, check_retry(book, find_consumer(unit, consumer), key), key, now)
            return self._store.keep_up_to_date(unit.state, [], now)

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
