"""Let time act on the queues of timed consumers, and on failed runs that are tried again. Contract 8.7, 9.6."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import update

from assetflow.core.freshness.asset_freshness import StateChange
from assetflow.core.freshness.demands import judge_states
from assetflow.core.freshness.recording import check_retry, retry
from assetflow.core.rules import clock
from assetflow.core.values.consumers import Decision
from assetflow.ledger.fold.source import due_queues, next_due
from assetflow.ledger.read.consumers import MISSED, missed_from_row
from assetflow.ledger.read.freshness import CHANGES, changes_of
from assetflow.ledger.records import MissedDeadlineRecord
from assetflow.ledger.sql.freshness_tables import POLICY_CHANGE
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import MISSED_DEADLINE
from assetflow.ledger.write.consumers import find_consumer
from assetflow.ledger.write.store import Operations

# A transaction goes through at most so many queues, so that others need not wait for long.
AT_ONCE = 500
_ANNOUNCED = update(MISSED_DEADLINE).where(in_values(MISSED_DEADLINE.c.number, "numbers"))
_TO_ANNOUNCE = MISSED.where(MISSED_DEADLINE.c.announced.is_(None)).order_by(MISSED_DEADLINE.c.number)


@dataclass(frozen=True)
class TimePassed:
    """The result of letting time pass.

    Attributes:
        decisions: the decisions, in the order of their instants for each queue.
        next: the next instant at which time may change something; `None` if there is none.
        policy_changes: how many changes of states of freshness policies are to be reported.
    """

    decisions: list[Decision]
    next: datetime | None
    policy_changes: int = 0


class ClockWriter(Operations):
    """Lets time act."""

    def run(self, until: datetime, now: datetime) -> TimePassed:
        """Go through the instants up to one at which time changes something, in order; of very many, through some.

        Parameters:
            until: everything that counts up to then is recorded.
        """
        with self._store.reads() as connection:
            if (first := next_due(connection)) is None or first > until:
                return TimePassed([], first)
        with self._store.transaction(now) as unit:
            queues = due_queues(unit.connection, until, AT_ONCE)
            unit.state.clocks.load(queues)
            unit.state.queues.load_events(queues)
            decisions, _ = clock.run(unit.state, queues, until)
            decisions = self._store.keep_up_to_date(unit.state, decisions, until, recorded=True)
            unit.state.freshness.idle()
            judge_states(unit.state.freshness, until)
            policy_changes = len(unit.state.freshness.changes.policy_changes)
        with self._store.reads() as connection:
            return TimePassed(decisions, next_due(connection), policy_changes)

    def to_announce(self, limit: int) -> list[MissedDeadlineRecord]:
        """Return the missed deadlines of which Prefect does not know yet, oldest first."""
        with self._store.reads() as connection:
            rows = connection.execute(_TO_ANNOUNCE.limit(limit)).all()
        return list(map(missed_from_row, rows))

    def announced(self, numbers: Collection[int], now: datetime) -> None:
        """Store that Prefect knows of these missed deadlines."""
        with self._store.writes() as connection:
            connection.execute(_ANNOUNCED.values(announced=now), {"numbers": numbers})


_OF_NUMBERS = update(POLICY_CHANGE).where(in_values(POLICY_CHANGE.c.number, "numbers"))
_TO_TELL = CHANGES.where(POLICY_CHANGE.c.stored.is_(None)).order_by(POLICY_CHANGE.c.number)


class FreshnessWriter(Operations):
    """Retries targets, and stores which changes of states were reported to Prefect."""

    def retry(self, consumer: int, key: str | None, now: datetime) -> list[Decision]:
        """Forget what an Eager or Lazy consumer tried and waived, and return the decisions of the pass that follows.

        Parameters:
            key: only of this target key; `None` for all targets.

        Raises:
            UnknownConsumer: no consumer has this id.
            InvalidCall: the consumer is neither Eager nor Lazy, or has no such key; `where` is `consumer` or `key`.
        """
        with self._store.transaction(now) as unit:
            freshness = unit.state.freshness
            retry(freshness, check_retry(freshness, find_consumer(unit, consumer), key), key, now)
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
