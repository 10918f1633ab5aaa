"""Which queues wait longest, and for what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, func, select

from assetflow.core.explain.what_if import why_it_waits
from assetflow.core.rules.state import State
from assetflow.ledger.read.states import QueueSource
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.rows import QUEUED, key_from_column
from assetflow.ledger.sql.tables import CONSUMER, EVENT, LEDGER, RECEIPT

# The first queued event of each consumer: of its only queue, or of the first of its pending partitions.
_FIRST = (
    select(RECEIPT.c.sequence)
    .where(RECEIPT.c.status == QUEUED, RECEIPT.c.consumer == CONSUMER.c.id)
    .order_by(RECEIPT.c.target_key, RECEIPT.c.sequence)
    .limit(1)
    .correlate(CONSUMER)
    .scalar_subquery()
)
_WAITING = (
    select(CONSUMER.c.id, _FIRST.label("first"))
    .where(CONSUMER.c.removed_at.is_(None), ~CONSUMER.c.paused, ~CONSUMER.c.held)
    .subquery()
)
# Only what is left of the many consumers is looked up in the large tables.
_OLDEST = (
    select(_WAITING.c.id, _WAITING.c.first, func.count().over().label("all"))
    .where(_WAITING.c.first.is_not(None))
    .order_by(_WAITING.c.first, _WAITING.c.id)
    .limit(bindparam("most"))
    .subquery()
)
_FIRST_KEY = (
    select(func.min(RECEIPT.c.target_key))
    .where(RECEIPT.c.status == QUEUED, RECEIPT.c.consumer == _OLDEST.c.id)
    .scalar_subquery()
)
_LONGEST = (
    select(_OLDEST.c.id, _FIRST_KEY, EVENT.c.recorded, _OLDEST.c.all)
    .join(EVENT, EVENT.c.sequence == _OLDEST.c.first)
    .order_by(_OLDEST.c.first, _OLDEST.c.id)
)
_LAST_EVENT = select(LEDGER.c.last_event)


@dataclass(frozen=True)
class WaitingQueue:
    """A queue that waits: since when its oldest event is recorded, and for what, as a sentence without its subject."""

    consumer: str
    target_key: str | None
    since: datetime
    words: str


class WaitingReader:
    """Reads what waits. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    def longest(self, now: datetime, *, limit: int) -> tuple[list[WaitingQueue], int]:
        """Return the queues that wait longest, of consumers that are neither paused nor held, and how many wait.

        Of a partitioned consumer, only the first pending key counts.
        """
        with self._connect() as connection:
            rows = connection.execute(_LONGEST, {"most": limit}).all()
            state = State(QueueSource(connection))
            state.begin(connection.execute(_LAST_EVENT).scalar_one() + 1, now)
            places = {(number, key_from_column(column)): since for number, column, since, _ in rows}
            state.consumers.load_ids(number for number, _ in places)
            state.queues.load(places)
            state.names.load(dict.fromkeys(uri for place in places for uri in state.queues.pending(*place)))
            found: list[WaitingQueue] = []
            for (number, key), since in places.items():
                consumer = state.consumers.find(number)
                if consumer is not None:
                    found.append(WaitingQueue(consumer.name, key, since, why_it_waits(state, consumer, key, now)))
        return found, rows[0][3] if rows else 0
