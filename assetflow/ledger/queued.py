"""What is queued, and what was decided and could not be delivered: by consumer, by asset, by event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, literal_column, select

from assetflow.core.events import AssetEvent
from assetflow.ledger.rows import EVENT_COLUMNS, QUEUED, event_from_row, key_from_column, key_to_column
from assetflow.ledger.tables import CONSUMER, DECISION, EVENT, PENDING, RECEIPT

_QUEUED = (
    select(*EVENT_COLUMNS, RECEIPT.c.consumer, CONSUMER.c.name, RECEIPT.c.target_key)
    .join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    .join(CONSUMER, CONSUMER.c.id == RECEIPT.c.consumer)
    .where(RECEIPT.c.status == QUEUED)
)
_UNDELIVERABLE = DECISION.c.status == literal_column("'undeliverable'")


@dataclass(frozen=True)
class QueuedEvent:
    """An event in the queue of a consumer, plain (no target key) or of one pending partition."""

    event: AssetEvent
    consumer: int
    consumer_name: str
    target_key: str | None


def in_queue(consumer: int, target_key: str | None) -> ColumnElement[bool]:
    """Whether a receipt is of an event in this queue."""
    key = key_to_column(target_key)
    return and_(RECEIPT.c.consumer == consumer, RECEIPT.c.target_key == key, RECEIPT.c.status == QUEUED)


def queue(connection: Connection, consumer: int, target_key: str | None, limit: int | None) -> list[AssetEvent]:
    """What is queued for a consumer and key, oldest first."""
    mine = _QUEUED.where(in_queue(consumer, target_key))
    return [event_from_row(row) for row in connection.execute(mine.order_by(RECEIPT.c.sequence).limit(limit))]


def counts(connection: Connection, consumer: int, target_key: str | None) -> dict[tuple[str, str | None], int]:
    """How many events of each asset and key are queued for a consumer and target key."""
    query = select(PENDING.c.uri, PENDING.c.source_key, PENDING.c.count).where(
        PENDING.c.consumer == consumer, PENDING.c.target_key == key_to_column(target_key)
    )
    return {(uri, key_from_column(key)): number for uri, key, number in connection.execute(query)}


def queued(connection: Connection, consumer: int | None, uri: str | None, event_id: UUID | None) -> list[QueuedEvent]:
    """See `Reader.queued`."""
    conditions: list[ColumnElement[bool]] = []
    if consumer is not None:
        conditions.append(RECEIPT.c.consumer == consumer)
    if event_id is not None:
        conditions.append(EVENT.c.id == event_id)
    if uri is not None:
        # A consumer's queue is short, the history of an asset may be long.
        waiting = select(PENDING.c.consumer).where(PENDING.c.uri == uri)
        conditions += [EVENT.c.uri == uri, RECEIPT.c.consumer.in_(waiting)]
    order = (CONSUMER.c.name, RECEIPT.c.target_key, RECEIPT.c.sequence)
    rows = connection.execute(_QUEUED.where(*conditions).order_by(*order)).all()
    return [_queued_event(row) for row in rows]


def queue_sizes(connection: Connection) -> dict[int, int]:
    """How many events are queued, for each consumer that has any."""
    query = select(PENDING.c.consumer, func.sum(PENDING.c.count)).group_by(PENDING.c.consumer)
    return {number: int(size) for number, size in connection.execute(query)}


def queue_size(connection: Connection, consumer: int) -> tuple[int, int]:
    """How many target keys of a consumer have something queued, and how many events these are."""
    query = select(func.count(PENDING.c.target_key.distinct()), func.coalesce(func.sum(PENDING.c.count), 0))
    keys, events = connection.execute(query.where(PENDING.c.consumer == consumer)).one()
    return keys, int(events)


def pending_keys(connection: Connection, consumer: int, after: str, limit: int) -> list[str]:
    """See `Reader.pending_keys`."""
    key = PENDING.c.target_key
    mine = select(key).where(PENDING.c.consumer == consumer, key > after).distinct().order_by(key).limit(limit)
    return list(connection.scalars(mine))


def pending(connection: Connection, consumer: int) -> dict[str | None, dict[str, set[str | None]]]:
    """The queues of a consumer in short."""
    query = select(PENDING.c.target_key, PENDING.c.uri, PENDING.c.source_key).where(PENDING.c.consumer == consumer)
    found: dict[str | None, dict[str, set[str | None]]] = {}
    for target_key, uri, source_key in connection.execute(query):
        uris = found.setdefault(key_from_column(target_key), {})
        uris.setdefault(uri, set()).add(key_from_column(source_key))
    return found


def holders(connection: Connection, uri: str | None, event_id: UUID | None) -> list[int]:
    """The consumers in whose plain queue events of an asset, or an event, are."""
    if uri is not None:
        query: Any = select(PENDING.c.consumer).where(PENDING.c.uri == uri).distinct().order_by(PENDING.c.consumer)
    else:
        query = select(RECEIPT.c.consumer).join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
        query = query.where(EVENT.c.id == event_id, RECEIPT.c.status == QUEUED).distinct().order_by(RECEIPT.c.consumer)
    return list(connection.scalars(query))


def undeliverable(connection: Connection, consumer: int | None, uri: str | None, event_id: UUID | None) -> list[UUID]:
    """See `Reader.undeliverable`."""
    query = select(DECISION.c.id).where(_UNDELIVERABLE).order_by(DECISION.c.number)
    if consumer is not None:
        query = query.where(DECISION.c.consumer == consumer)
    if uri is not None or event_id is not None:
        consumed = select(RECEIPT.c.decision).join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
        consumed = consumed.where(RECEIPT.c.decision == DECISION.c.number, RECEIPT.c.decision.is_not(None))
        if uri is not None:
            consumed = consumed.where(EVENT.c.uri == uri)
        if event_id is not None:
            consumed = consumed.where(EVENT.c.id == event_id)
        query = query.where(consumed.exists())
    return list(connection.scalars(query))


def _queued_event(row: Sequence[Any]) -> QueuedEvent:
    number, name, target_key = row[-3:]
    return QueuedEvent(event_from_row(row), number, name, key_from_column(target_key))
