"""Let time act on the queues of timed consumers, and on failed runs that are tried again. Contract 8.7, 9.6."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import update

from assetflow.core.freshness.states import judge_states
from assetflow.core.rules import clock
from assetflow.core.values.consumers import Decision
from assetflow.ledger.fold.clocks import due_queues, next_due
from assetflow.ledger.read.deadlines import MISSED, missed_from_row
from assetflow.ledger.records import MissedDeadlineRecord
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import MISSED_DEADLINE
from assetflow.ledger.write.store import Store

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
        told: how many states of freshness policies changed, which has to be told.
    """

    decisions: list[Decision]
    next: datetime | None
    told: int = 0


class ClockWriter:
    """Lets time act. All methods raise `LedgerLocked` and `LedgerError` if the ledger cannot be written."""

    def __init__(self, store: Store) -> None:
        self._store = store

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
            unit.state.freshness.rest()
            judge_states(unit.state.freshness, until)
            told = len(unit.state.freshness.changes.told)
        with self._store.reads() as connection:
            return TimePassed(decisions, next_due(connection), told)

    def to_announce(self, limit: int) -> list[MissedDeadlineRecord]:
        """Return the missed deadlines of which Prefect does not know yet, oldest first."""
        with self._store.reads() as connection:
            rows = connection.execute(_TO_ANNOUNCE.limit(limit)).all()
        return [missed_from_row(row) for row in rows]

    def announced(self, numbers: Collection[int], now: datetime) -> None:
        """Store that Prefect knows of these missed deadlines."""
        with self._store.writes() as connection:
            connection.execute(_ANNOUNCED.values(announced=now), {"numbers": numbers})
