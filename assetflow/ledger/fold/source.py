"""The source of the fold's state: the tables as they were when the transaction began."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, bindparam, delete, func, or_, select

from assetflow.core.rules.state import Changes, QueueKey, Source
from assetflow.core.rules.state.changes import ConsumerClock, QueueClock
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Receipt
from assetflow.core.values.events import AssetEvent, Content
from assetflow.ledger.fold.freshness_source import NEXT_OF_POLICIES, NEXT_TARGET, FreshnessTables
from assetflow.ledger.sql.bulk import in_values, insert_rows, upsert_rows
from assetflow.ledger.sql.rows import (
    CONSUMER_CLOCKS,
    CONSUMER_COLUMNS,
    EVENT_COLUMNS,
    MISSED_DEADLINES,
    QUEUE_CLOCKS,
    QUEUED,
    RECEIPT_COLUMNS,
    RECEIPTS,
    consumer_from_row,
    event_from_row,
    receipt_from_row,
)
from assetflow.ledger.sql.tables import (
    ALIAS_LINK,
    ASSET,
    ASSET_NAME,
    CONSUMER,
    CONSUMER_CLOCK,
    CONSUMER_TOKEN,
    DECISION,
    EDGE,
    EVENT,
    PENDING,
    QUEUE_CLOCK,
    RECEIPT,
)

_QUEUE_PLACE = (QUEUE_CLOCK.c.consumer, QUEUE_CLOCK.c.target_key)
_HOURS = select(CONSUMER_CLOCK.c.consumer, *CONSUMER_CLOCKS.columns).where(
    in_values(CONSUMER_CLOCK.c.consumer, "consumers")
)
_CLOCKS = select(*_QUEUE_PLACE, *QUEUE_CLOCKS.columns).where(
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
_DUE_QUEUES = select(*_QUEUE_PLACE).where(QUEUE_CLOCK.c.due <= bindparam("until")).order_by(QUEUE_CLOCK.c.due)
_DUE_HOURS = (
    select(CONSUMER_CLOCK.c.consumer).where(CONSUMER_CLOCK.c.due <= bindparam("until")).order_by(CONSUMER_CLOCK.c.due)
)
_NEXT = (select(func.min(QUEUE_CLOCK.c.due)), select(func.min(CONSUMER_CLOCK.c.due)), NEXT_TARGET, *NEXT_OF_POLICIES)
_SET_HOURS = upsert_rows(CONSUMER_CLOCK.c.consumer, *CONSUMER_CLOCKS.columns)
_SET_QUEUE = upsert_rows(*_QUEUE_PLACE, *QUEUE_CLOCKS.columns)
_ADD_MISSED = insert_rows(*MISSED_DEADLINES.columns)


def due_queues(connection: Connection, until: datetime, most: int) -> list[QueueKey]:
    """Return queues at which something may change up to an instant, and those of consumers whose hours are due.

    A consumer whose opening hours are due comes with the key `None`; an opening finds its other queues.
    """
    found = [(number, key) for number, key in connection.execute(_DUE_QUEUES.limit(most), {"until": until})]
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
    hours = [(number, *CONSUMER_CLOCKS.row(clock)) for number, clock in kept.items()]
    _SET_HOURS.run(connection, sorted(hours, key=lambda row: row[0]))
    clocks = changes.queue_clocks.items()
    queues = [(*queue, *QUEUE_CLOCKS.row(clock)) for queue, clock in clocks if queue[0] not in removed]
    _SET_QUEUE.run(connection, sorted(queues, key=lambda row: (row[0], row[1] or "")))
    _ADD_MISSED.run(connection, [*map(MISSED_DEADLINES.row, changes.missed)])


def _moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


_OWNERS = select(ASSET_NAME.c.name, ASSET_NAME.c.uri).where(in_values(ASSET_NAME.c.name, "names"))
_NAMES = select(ASSET_NAME.c.uri, ASSET_NAME.c.name).where(in_values(ASSET_NAME.c.uri, "uris"))
_LINKS = select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias).where(in_values(ALIAS_LINK.c.uri, "uris"))
_ASSETS = select(ASSET.c.uri, ASSET.c.group, ASSET.c.extra).where(in_values(ASSET.c.uri, "uris"))
_RECORDED = select(EVENT.c.id, EVENT.c.uri, EVENT.c.partition_key, EVENT.c.extra, EVENT.c.data_version).where(
    in_values(EVENT.c.id, "ids")
)
_DELIVERED = (
    select(EVENT.c.recording, EVENT.c.uri, EVENT.c.partition_key, EVENT.c.occurred)
    .where(in_values(EVENT.c.recording, "recordings"))
    .order_by(EVENT.c.sequence)
)
_EVENTS = select(*EVENT_COLUMNS).where(in_values(EVENT.c.sequence, "sequences"))
_NEWEST_OF = select(*EVENT_COLUMNS).where(EVENT.c.uri == bindparam("uri")).order_by(EVENT.c.sequence.desc()).limit(1)
_PLACES = select(EVENT.c.id, EVENT.c.sequence).where(in_values(EVENT.c.id, "ids"))
_PLACE_AT = (
    select(EVENT.c.sequence)
    .where(EVENT.c.uri == bindparam("uri"), EVENT.c.recorded <= bindparam("instant"))
    .order_by(EVENT.c.sequence.desc())
    .limit(1)
)
_FIRST_AFTER = select(func.min(EVENT.c.sequence)).where(
    EVENT.c.uri == bindparam("uri"), EVENT.c.sequence > bindparam("place")
)
_MADE = (
    select(EDGE.c.deployment_id)
    .where(
        EDGE.c.direction == "produces",
        ~EDGE.c.learned,
        or_(*(and_(EDGE.c.kind == kind, in_values(EDGE.c.value, kind)) for kind in ("uri", "name"))),
    )
    .limit(1)
)
_DECLARED = (
    select(EDGE.c.deployment_id)
    .where(EDGE.c.kind == "uri", EDGE.c.value == bindparam("uri"), EDGE.c.deployment_id != bindparam("besides"))
    .where(~EDGE.c.learned)
    .limit(1)
)
_ENDS_OF_RECORDINGS = (
    select(EVENT.c.recording, func.max(EVENT.c.sequence))
    .where(in_values(EVENT.c.sequence, "sequences"))
    .group_by(EVENT.c.recording)
)
_WANTING = select(CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value, CONSUMER_TOKEN.c.consumer).where(
    or_(
        *(
            and_(CONSUMER_TOKEN.c.kind == kind, in_values(CONSUMER_TOKEN.c.value, kind))
            for kind in ("uri", "name", "alias")
        )
    )
)
_CONSUMERS = select(*CONSUMER_COLUMNS).where(in_values(CONSUMER.c.id, "numbers"), CONSUMER.c.removed_at.is_(None))
_LIVE = select(CONSUMER.c.id).where(CONSUMER.c.removed_at.is_(None))
_PLACE = (PENDING.c.consumer, PENDING.c.target_key, PENDING.c.uri, PENDING.c.source_key)
_COUNTS = select(*_PLACE, PENDING.c.count).where(
    in_values(PENDING.c.consumer, "consumers"), in_values(PENDING.c.target_key, "keys")
)
_QUEUED = select(RECEIPT.c.sequence, RECEIPT.c.consumer, RECEIPT.c.target_key).where(
    RECEIPT.c.status == QUEUED, in_values(RECEIPT.c.consumer, "consumers"), in_values(RECEIPT.c.target_key, "keys")
)
_BUSY = select(DECISION.c.consumer, DECISION.c.target_key).where(
    in_values(DECISION.c.consumer, "consumers"), DECISION.c.ended.is_(None)
)


class LedgerSource(FreshnessTables, Source):
    """Reads from the tables what the state does not know. `Source` says what each method returns."""

    def owners(self, names: Collection[str]) -> Iterable[tuple[str, str]]:
        return self._rows(_OWNERS, names=names)

    def names(self, uris: Collection[str]) -> Iterable[tuple[str, str]]:
        return self._rows(_NAMES, uris=uris)

    def aliases(self, uris: Collection[str]) -> Iterable[tuple[str, str]]:
        return self._rows(_LINKS, uris=uris)

    def descriptions(self, uris: Collection[str]) -> Iterable[tuple[str, str, Mapping[str, object]]]:
        return self._rows(_ASSETS, uris=uris)

    def recorded(self, ids: Collection[UUID]) -> Iterable[tuple[UUID, Content]]:
        return ((number, (uri, *said)) for number, uri, *said in self._rows(_RECORDED, ids=ids))

    def delivered(self, recordings: Collection[UUID]) -> Iterable[tuple[UUID, str, str | None, datetime]]:
        return self._rows(_DELIVERED, recordings=recordings)

    def events(self, sequences: Collection[int]) -> Iterable[AssetEvent]:
        return map(event_from_row, self._rows(_EVENTS, sequences=sequences))

    def newest_event(self, uri: str, key: str | None) -> AssetEvent | None:
        query = _NEWEST_OF.where(EVENT.c.partition_key.is_not_distinct_from(bindparam("key", key)))
        return next(map(event_from_row, self._rows(query, uri=uri)), None)

    def places(self, ids: Collection[UUID]) -> Iterable[tuple[UUID, int]]:
        return self._rows(_PLACES, ids=ids)

    def place_at(self, uri: str, instant: datetime) -> int:
        return self.connection.scalar(_PLACE_AT, {"uri": uri, "instant": instant}) or 0

    def first_after(self, uri: str, place: int) -> int | None:
        return self.connection.scalar(_FIRST_AFTER, {"uri": uri, "place": place})

    def is_declared(self, uri: str, besides: UUID) -> bool:
        return self.connection.scalar(_DECLARED, {"uri": uri, "besides": besides}) is not None

    def is_made(self, tokens: Collection[Token]) -> bool:
        return bool(self._rows(_MADE, **_by_kind(tokens)))

    def ends_of_recordings(self, sequences: Collection[int]) -> Iterable[tuple[UUID, int]]:
        return self._rows(_ENDS_OF_RECORDINGS, sequences=sequences) if sequences else ()

    def wanting(self, tokens: Collection[Token]) -> Iterable[tuple[Token, int]]:
        rows = self._rows(_WANTING, **_by_kind(tokens))
        return ((Token(kind, value), consumer) for kind, value, consumer in rows)

    def consumers(self, numbers: Collection[int]) -> Iterable[tuple[int, Consumer]]:
        return ((row[0], consumer_from_row(row)) for row in self._rows(_CONSUMERS, numbers=numbers))

    def live(self) -> Iterable[int]:
        return self._scalars(_LIVE)

    def pending_keys(self, consumer: int) -> Iterable[str | None]:
        return self._scalars(select(PENDING.c.target_key).where(PENDING.c.consumer == consumer).distinct())

    def counts(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, str, str | None, int]]:
        for consumer, target_key, uri, key, count in self._rows(_COUNTS, **_columns(queues)):
            yield (consumer, target_key), uri, key, count

    def queued(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, int]]:
        for sequence, consumer, target_key in self._rows(_QUEUED, **_columns(queues)):
            yield (consumer, target_key), sequence

    def receipts(self, consumer: int, event: int) -> Iterable[Receipt]:
        of_event = RECEIPT.c.sequence == event, RECEIPT.c.consumer == consumer
        query = select(*RECEIPT_COLUMNS).select_from(RECEIPTS).where(*of_event)
        return map(receipt_from_row, self._rows(query))

    def busy(self, consumers: Collection[int]) -> Iterable[QueueKey]:
        rows = self._rows(_BUSY, consumers=consumers)
        return ((consumer, target_key) for consumer, target_key in rows)

    def consumer_clocks(self, consumers: Collection[int]) -> Iterable[tuple[int, ConsumerClock]]:
        return ((consumer, CONSUMER_CLOCKS.read(row)) for consumer, *row in self._rows(_HOURS, consumers=consumers))

    def queue_clocks(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, QueueClock]]:
        rows = self._rows(_CLOCKS, **_columns(queues))
        return (((consumer, key), QUEUE_CLOCKS.read(row)) for consumer, key, *row in rows)

    def last_decisions(self, consumer: int) -> Iterable[tuple[QueueKey, datetime, datetime]]:
        for target_key, made, starts in self.connection.execute(LAST_DECISIONS, {"of_consumer": consumer}):
            yield (consumer, target_key), made, starts


def _columns(queues: Iterable[QueueKey]) -> dict[str, Collection[Any]]:
    """Return the values that find at least these queues."""
    consumers: dict[int, None] = {}
    keys: dict[str | None, None] = {}
    for consumer, key in queues:
        consumers[consumer] = None
        keys[key] = None
    return {"consumers": consumers, "keys": keys}


def _by_kind(tokens: Iterable[Token]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {"uri": [], "name": [], "alias": []}
    for kind, value in tokens:
        values[kind].append(value)
    return values
