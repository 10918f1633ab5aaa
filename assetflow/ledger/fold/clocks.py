"""What the clock remembers, in the tables: read for the state, and written from its changes. Contract 9.6 to 9.8."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, func, select

from assetflow.core.rules.state import Changes, QueueKey
from assetflow.core.rules.state.clocks import ConsumerClock, QueueClock
from assetflow.core.values.consumers import MissedDeadline
from assetflow.ledger.fold.freshness_source import NEXT_OF_POLICIES, NEXT_TARGET
from assetflow.ledger.sql.bulk import insert_rows, upsert_rows
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.rows import key_from_column, key_to_column
from assetflow.ledger.sql.tables import CONSUMER_CLOCK, DECISION, MISSED_DEADLINE, QUEUE_CLOCK

_HOURS = (
    CONSUMER_CLOCK.c.gone_through,
    CONSUMER_CLOCK.c.opened,
    CONSUMER_CLOCK.c.is_open,
    CONSUMER_CLOCK.c.deadlines,
    CONSUMER_CLOCK.c.due,
)
_QUEUE = (
    QUEUE_CLOCK.c.gone_through,
    QUEUE_CLOCK.c.closed,
    QUEUE_CLOCK.c.overdue,
    QUEUE_CLOCK.c.told,
    QUEUE_CLOCK.c.deferred,
    QUEUE_CLOCK.c.due,
    QUEUE_CLOCK.c.decided,
    QUEUE_CLOCK.c.started,
)
_PLACE = (QUEUE_CLOCK.c.consumer, QUEUE_CLOCK.c.target_key)
CONSUMER_CLOCKS = select(CONSUMER_CLOCK.c.consumer, *_HOURS).where(in_values(CONSUMER_CLOCK.c.consumer, "consumers"))
QUEUE_CLOCKS = select(*_PLACE, *_QUEUE).where(
    in_values(QUEUE_CLOCK.c.consumer, "consumers"), in_values(QUEUE_CLOCK.c.target_key, "keys")
)
_OF_CONSUMER = (DECISION.c.consumer == bindparam("of_consumer"), DECISION.c.kind == "asset")
# A ledger that is restored may find its decisions in another order than that of their instants.
_DECIDED_LAST = (
    select(DECISION.c.target_key, func.max(DECISION.c.made).label("made"))
    .where(*_OF_CONSUMER)
    .group_by(DECISION.c.target_key)
    .subquery()
)
LAST_DECISIONS = (
    select(
        DECISION.c.target_key,
        DECISION.c.made,
        func.coalesce(DECISION.c.scheduled, DECISION.c.decided, type_=DECISION.c.decided.type),
    )
    .join(
        _DECIDED_LAST,
        and_(DECISION.c.target_key == _DECIDED_LAST.c.target_key, DECISION.c.made == _DECIDED_LAST.c.made),
    )
    .where(*_OF_CONSUMER)
    .order_by(DECISION.c.number)
)
_DUE_QUEUES = select(*_PLACE).where(QUEUE_CLOCK.c.due <= bindparam("until")).order_by(QUEUE_CLOCK.c.due)
_DUE_HOURS = (
    select(CONSUMER_CLOCK.c.consumer).where(CONSUMER_CLOCK.c.due <= bindparam("until")).order_by(CONSUMER_CLOCK.c.due)
)
_NEXT = (select(func.min(QUEUE_CLOCK.c.due)), select(func.min(CONSUMER_CLOCK.c.due)), NEXT_TARGET, *NEXT_OF_POLICIES)
_SET_HOURS = upsert_rows((CONSUMER_CLOCK.c.consumer,), _HOURS)
_SET_QUEUE = upsert_rows(_PLACE, _QUEUE)
_MISSED = (
    MISSED_DEADLINE.c.number,
    MISSED_DEADLINE.c.consumer,
    MISSED_DEADLINE.c.target_key,
    MISSED_DEADLINE.c.due,
    MISSED_DEADLINE.c.at,
    MISSED_DEADLINE.c.then,
    MISSED_DEADLINE.c.queued,
    MISSED_DEADLINE.c.missing,
)
_ADD_MISSED = insert_rows(_MISSED)


def hours_from_row(row: Sequence[Any]) -> tuple[int, ConsumerClock]:
    """Return the opening hours of a consumer from a row of `CONSUMER_CLOCKS`."""
    consumer, gone_through, opened, is_open, deadlines, due = row
    pairs = tuple((datetime.fromisoformat(at), datetime.fromisoformat(of)) for at, of in deadlines)
    return consumer, ConsumerClock(gone_through, opened, is_open, pairs, due)


def clock_from_row(row: Sequence[Any]) -> tuple[QueueKey, QueueClock]:
    """Return the clock of a queue from a row of `QUEUE_CLOCKS`."""
    consumer, target_key, *rest = row
    return (consumer, key_from_column(target_key)), QueueClock(*rest)


def due_queues(connection: Connection, until: datetime, most: int) -> list[QueueKey]:
    """Return queues at which something may change up to an instant, and those of consumers whose hours are due.

    A consumer whose opening hours are due comes with the key `None`; an opening finds its other queues.
    """
    found = [
        (number, key_from_column(key)) for number, key in connection.execute(_DUE_QUEUES.limit(most), {"until": until})
    ]
    return found + [(number, None) for number in connection.scalars(_DUE_HOURS.limit(most), {"until": until})]


def next_due(connection: Connection) -> datetime | None:
    """Return the next instant at which time may change something for anybody; `None` if there is none."""
    found = [connection.scalar(query) for query in _NEXT]
    moments = [_moment(moment) for moment in found if moment is not None]
    return min(moments, default=None)


def write_clocks(connection: Connection, changes: Changes) -> None:
    """Write what the clock remembers from now on, and the deadlines that were missed."""
    removed = {number for number, (_, after) in changes.consumers.items() if after is None}
    closed = {number for number, clock in changes.consumer_clocks.items() if clock is None}
    if removed or closed:
        connection.execute(delete(CONSUMER_CLOCK).where(CONSUMER_CLOCK.c.consumer.in_(removed | closed)))
        connection.execute(delete(QUEUE_CLOCK).where(QUEUE_CLOCK.c.consumer.in_(removed)))
    kept = {number: clock for number, clock in changes.consumer_clocks.items() if clock and number not in removed}
    hours = [(number, *_hours_row(clock)) for number, clock in kept.items()]
    _SET_HOURS.run(connection, sorted(hours, key=lambda row: row[0]))
    queues = [
        (number, key_to_column(key), *_queue_row(each))
        for (number, key), each in changes.queue_clocks.items()
        if number not in removed
    ]
    _SET_QUEUE.run(connection, sorted(queues, key=lambda row: row[:2]))
    if changes.missed:
        last = connection.scalar(select(func.max(MISSED_DEADLINE.c.number))) or 0
        _ADD_MISSED.run(connection, list(_missed_rows(changes.missed, last)))


def _hours_row(clock: ConsumerClock) -> tuple[Any, ...]:
    deadlines = [[at.isoformat(), of.isoformat()] for at, of in clock.deadlines]
    return clock.gone_through, clock.opened, clock.is_open, deadlines, clock.due


def _queue_row(clock: QueueClock) -> tuple[Any, ...]:
    acted = (clock.gone_through, clock.closed, clock.overdue, clock.told, clock.deferred, clock.due)
    return *acted, clock.decided, clock.started


def _missed_rows(missed: Iterable[MissedDeadline], last: int) -> Iterable[tuple[Any, ...]]:
    for number, each in enumerate(missed, last + 1):
        what = (each.then, each.queued, each.missing)
        yield number, each.consumer, key_to_column(each.target_key), each.due, each.at, *what


def _moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)
