"""The queues of consumers: events, counts, and pending partitions, now and at a moment of the past.

Nothing keeps the past: receipts say what became of each event, decisions when. An event was queued at a moment if it
was recorded by then, and left the queue later or not at all.
"""

# The source of a past queue answers for the one consumer that its state is asked about.
# ruff: noqa: ARG002

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, func, not_, or_, select

from assetflow.core.compare import Beginning
from assetflow.core.explain.facts import QueuedEvents, Waiting, waiting_of
from assetflow.core.explain.what_if import why_it_waits
from assetflow.core.grouping import grouped
from assetflow.core.rules.evaluation import Pending
from assetflow.core.rules.state import QueueKey, State
from assetflow.core.rules.state.changes import ConsumerClock, QueueClock
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent
from assetflow.ledger.read import Topic, given
from assetflow.ledger.read.partitions import QueueSource
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.rows import QUEUED, SHOWN_EVENT, event_from_row
from assetflow.ledger.sql.tables import ASSET, CONSUMER, DECISION, EVENT, LEDGER, NO_KEY, PENDING, RECEIPT

AssetKey = tuple[str, str | None]

_EVENTS = select(*SHOWN_EVENT).order_by(EVENT.c.sequence)
_OF_RECEIPTS = select(*SHOWN_EVENT).join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence).order_by(RECEIPT.c.sequence)
# Sorting takes longest: updates without a key of an asset that is known are left out before.
_FIRST = (
    select(EVENT.c.uri, EVENT.c.partition_key, func.min(EVENT.c.sequence))
    .join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    .where(not_(and_(EVENT.c.partition_key.is_(None), in_values(EVENT.c.uri, "known"))))
    .group_by(EVENT.c.uri, EVENT.c.partition_key)
)
# Of a queue, so many events are read; of the decisions that followed, so many are looked through for its events.
MOST = 5_000
LATER_DECISIONS = 500
# Events that were taken out of a queue without a decision are found if they are among so many before the moment.
LOOKED_BACK = 50_000

_INSTANT = timedelta(microseconds=1)
_TAKEN_OUT = ("removed", "expired", "skipped", "superseded")
_OF = DECISION.c.consumer == bindparam("consumer")
_LAST_DECISION = (
    select(DECISION.c.number)
    .where(_OF, DECISION.c.made <= bindparam("moment"))
    .order_by(DECISION.c.number.desc())
    .limit(1)
)
_LATER = (
    select(DECISION.c.number)
    .where(_OF, DECISION.c.number > bindparam("last"))
    .order_by(DECISION.c.number)
    .limit(LATER_DECISIONS)
)
_OPEN = select(DECISION.c.target_key, DECISION.c.earlier_ends).where(
    _OF, DECISION.c.made <= bindparam("moment"), or_(DECISION.c.ended.is_(None), DECISION.c.ended > bindparam("moment"))
)
_DECIDED = (
    select(DECISION.c.target_key, func.max(DECISION.c.number))
    .where(_OF, DECISION.c.made <= bindparam("moment"))
    .group_by(DECISION.c.target_key)
)
_CLOCKS = select(DECISION.c.target_key, DECISION.c.made, DECISION.c.scheduled, DECISION.c.opening).where(
    in_values(DECISION.c.number, "numbers")
)
_PLACE = (
    select(EVENT.c.sequence)
    .where(EVENT.c.occurred <= bindparam("moment"))
    .order_by(EVENT.c.occurred.desc(), EVENT.c.sequence.desc())
    .limit(1)
)
_BEFORE = and_(
    RECEIPT.c.consumer == bindparam("consumer"),
    RECEIPT.c.sequence.between(bindparam("first"), bindparam("place")),
    EVENT.c.recorded <= bindparam("moment"),
)
_TAKEN = (
    select(*SHOWN_EVENT, RECEIPT.c.target_key)
    .join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    .order_by(RECEIPT.c.sequence)
    .limit(MOST)
)
_STILL_QUEUED = _TAKEN.where(
    RECEIPT.c.consumer == bindparam("consumer"), RECEIPT.c.status == QUEUED, EVENT.c.recorded <= bindparam("moment")
)
_CONSUMED_LATER = _TAKEN.where(in_values(RECEIPT.c.decision, "decisions"), EVENT.c.recorded <= bindparam("moment"))
_TAKEN_LATER = _TAKEN.where(_BEFORE, RECEIPT.c.status.in_(_TAKEN_OUT), RECEIPT.c.at > bindparam("moment"))
_DROPPED = (
    select(func.count())
    .select_from(RECEIPT.join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence))
    .where(_BEFORE, RECEIPT.c.status == "dropped", EVENT.c.recorded > bindparam("since"))
)


@dataclass(frozen=True)
class EventSample:
    """A sample of events, in the order of the ledger.

    Attributes:
        total: the number of events that the sample stands for.
        counts: of a queue, the number of events of each asset, by URI, including those that are not in the sample.
    """

    events: tuple[AssetEvent, ...]
    total: int
    counts: Mapping[str, int] = field(default_factory=dict[str, int])


def sample(
    connection: Connection,
    receipts: ColumnElement[bool],
    most: int,
    there: Collection[AssetKey] | None = None,
) -> tuple[AssetEvent, ...]:
    """Return the events of these receipts; of more than `most` the oldest, and the first of each asset and key.

    Parameters:
        there: the assets and keys of all events, where they are known without reading the events.
    """
    rows = connection.execute(_OF_RECEIPTS.where(receipts).limit(most)).all()
    oldest = tuple(event_from_row(row) for row in rows)
    seen = {(event.uri, event.partition_key) for event in oldest}
    if len(oldest) < most or (there is not None and seen.issuperset(there)):
        return oldest
    behind = _firsts(connection, receipts, oldest[-1].sequence or 0, seen)
    others = connection.execute(_EVENTS.where(in_values(EVENT.c.sequence, "behind")), {"behind": behind}).all()
    return (*oldest, *(event_from_row(row) for row in others))


def _firsts(
    connection: Connection, receipts: ColumnElement[bool], after: int, seen: Collection[AssetKey]
) -> Sequence[int]:
    """Return the sequence of the first event of each asset and key that comes only after a sequence."""
    query = _FIRST.where(receipts, RECEIPT.c.sequence > after)
    rows = connection.execute(query, {"known": [uri for uri, key in seen if key is None]}).all()
    return [first for uri, key, first in rows if (uri, key) not in seen]


# Behind all sequences.
LAST = 1 << 62
_QUEUED = (
    select(*SHOWN_EVENT, RECEIPT.c.consumer, CONSUMER.c.name, RECEIPT.c.target_key)
    .join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    .join(CONSUMER, CONSUMER.c.id == RECEIPT.c.consumer)
    .where(RECEIPT.c.status == QUEUED)
)
_OLDEST = (
    select(func.min(EVENT.c.recorded))
    .select_from(RECEIPT.join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence))
    .where(
        RECEIPT.c.consumer == PENDING.c.consumer,
        RECEIPT.c.target_key == PENDING.c.target_key,
        RECEIPT.c.status == QUEUED,
        EVENT.c.uri == PENDING.c.uri,
    )
    .scalar_subquery()
)
_QUEUED_ASSETS = (
    select(PENDING.c.consumer, CONSUMER.c.name, PENDING.c.uri, ASSET.c.id, PENDING.c.count, _OLDEST)
    .select_from(PENDING.join(CONSUMER, CONSUMER.c.id == PENDING.c.consumer).join(ASSET, ASSET.c.uri == PENDING.c.uri))
    .where(PENDING.c.target_key == NO_KEY)
    .order_by(PENDING.c.consumer, ASSET.c.id)
)


@dataclass(frozen=True)
class QueuedEvent:
    """An event in the queue of a consumer; the target key of a plain queue is `None`."""

    event: AssetEvent
    consumer: int
    consumer_name: str
    target_key: str | None


@dataclass(frozen=True)
class QueuedAsset:
    """An asset with events in a plain queue: how many, and when the oldest was recorded."""

    consumer: int
    consumer_name: str
    uri: str
    asset: int
    events: int
    since: datetime


class QueueReader(Topic):
    """Reads queues."""

    def events(
        self, consumer: int, target_key: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[AssetEvent]:
        """Return the events in a queue, oldest first: those whose sequence is greater than `after`."""
        query = _QUEUED.where(_in_queue(consumer, target_key), RECEIPT.c.sequence > after)
        query = query.order_by(RECEIPT.c.sequence).limit(limit)
        return [event_from_row(row) for row in self._rows(query)]

    def sample_of(self, consumer: int, target_key: str | None, *, most: int) -> EventSample:
        """Return the events in a queue; of more than `most` those that an explanation needs."""
        counts = select(PENDING.c.uri, PENDING.c.source_key, PENDING.c.count).where(
            PENDING.c.consumer == consumer, PENDING.c.target_key == (target_key or NO_KEY)
        )
        with self._connect() as connection:
            counted = {(uri, key): number for uri, key, number in connection.execute(counts)}
            events = sample(connection, _in_queue(consumer, target_key), most, counted)
        found: Counter[str] = Counter()
        if len(events) < most:
            found.update(event.uri for event in events)
        else:
            for (uri, _), number in counted.items():
                found[uri] += number
        return EventSample(events, found.total(), found)

    def find(
        self, consumer: int | None = None, *, uri: str | None = None, event_id: UUID | None = None
    ) -> list[QueuedEvent]:
        """Return what is queued: for a consumer, of an asset, or one event; by consumer, target key and age."""
        conditions = given((RECEIPT.c.consumer, consumer), (EVENT.c.id, event_id), (EVENT.c.uri, uri))
        if uri is not None:
            # A consumer's queue is short, the history of an asset may be long.
            conditions.append(RECEIPT.c.consumer.in_(select(PENDING.c.consumer).where(PENDING.c.uri == uri)))
        query = _QUEUED.where(*conditions).order_by(CONSUMER.c.name, RECEIPT.c.target_key, RECEIPT.c.sequence)
        return [QueuedEvent(event_from_row(row), *row[-3:]) for row in self._rows(query)]

    def assets(self, *, consumer: int | None = None, uri: str | None = None) -> list[QueuedAsset]:
        """Return the assets in plain queues, by consumer and asset. Contract 3.7.

        Parameters:
            consumer, uri: only of this consumer, only this asset.
        """
        query = _QUEUED_ASSETS.where(*given((PENDING.c.consumer, consumer), (PENDING.c.uri, uri)))
        return [QueuedAsset(*row) for row in self._rows(query)]

    def pending(self, consumer: int) -> Mapping[str | None, Pending]:
        """Return the queues of a consumer in short: by target key, URI and key, the number of events."""
        query = select(PENDING.c.target_key, PENDING.c.uri, PENDING.c.source_key, PENDING.c.count)
        found: dict[str | None, dict[str, dict[str | None, int]]] = {}
        for target_key, uri, key, count in self._rows(query.where(PENDING.c.consumer == consumer)):
            found.setdefault(target_key, {}).setdefault(uri, {})[key] = count
        return found

    def waiting(self, consumer: Consumer, target_key: str | None, now: datetime) -> Waiting | None:
        """Return what the clock says about a queue; `None` for a consumer that is not timed. Contract 9.15."""
        if not consumer.is_timed:
            return None
        with self._connect() as connection:
            state = State(QueueSource(connection))
            # The state reads everything from the tables: no event is newer than them.
            state.begin(LAST + 1)
            return waiting_of(state, consumer, target_key, now)

    def pending_keys(self, consumer: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the target keys for which something is queued, ordered as texts, from the first after `after` on."""
        key = PENDING.c.target_key
        query = select(key).where(PENDING.c.consumer == consumer, key > after).distinct().order_by(key).limit(limit)
        return list(self._scalars(query))

    def size(self, consumer: int) -> tuple[int, int]:
        """Return for how many target keys of a consumer something is queued, and how many events that is."""
        query = select(func.count(PENDING.c.target_key.distinct()), func.coalesce(func.sum(PENDING.c.count), 0))
        keys, events = self._rows(query.where(PENDING.c.consumer == consumer))[0]
        return keys, int(events)

    def sizes(self) -> Mapping[int, int]:
        """Return the number of queued events for each consumer that has any."""
        query = select(PENDING.c.consumer, func.sum(PENDING.c.count)).group_by(PENDING.c.consumer)
        return {number: int(size) for number, size in self._rows(query)}

    def longest(self, now: datetime, *, limit: int) -> tuple[list[WaitingQueue], int]:
        """Return the queues that wait longest, of consumers that are neither paused nor held, and how many wait.

        Of a partitioned consumer, only the first pending key counts.
        """
        with self._connect() as connection:
            rows = connection.execute(_LONGEST, {"most": limit}).all()
            places = {(number, key): since for number, key, since, _ in rows}
            words = words_of_queues(connection, places, now)
        found = [WaitingQueue(*words[place], since) for place, since in places.items() if place in words]
        return found, rows[0][3] if rows else 0


def _in_queue(consumer: int, target_key: str | None) -> ColumnElement[bool]:
    """Return the condition that a receipt belongs to an event in this queue."""
    key = target_key or NO_KEY
    return and_(RECEIPT.c.consumer == consumer, RECEIPT.c.target_key == key, RECEIPT.c.status == QUEUED)


# The first queued event of each consumer: of its only queue, or of the first of its pending partitions.
_FIRST_QUEUED = (
    select(RECEIPT.c.sequence)
    .where(RECEIPT.c.status == QUEUED, RECEIPT.c.consumer == CONSUMER.c.id)
    .order_by(RECEIPT.c.target_key, RECEIPT.c.sequence)
    .limit(1)
    .correlate(CONSUMER)
    .scalar_subquery()
)
_WAITING = (
    select(CONSUMER.c.id, _FIRST_QUEUED.label("first"))
    .where(CONSUMER.c.removed_at.is_(None), ~CONSUMER.c.paused, ~CONSUMER.c.held)
    .subquery()
)
# Only what is left of the many consumers is looked up in the large tables.
_OLDEST_QUEUES = (
    select(_WAITING.c.id, _WAITING.c.first, func.count().over().label("all"))
    .where(_WAITING.c.first.is_not(None))
    .order_by(_WAITING.c.first, _WAITING.c.id)
    .limit(bindparam("most"))
    .subquery()
)
_FIRST_KEY = (
    select(func.min(RECEIPT.c.target_key))
    .where(RECEIPT.c.status == QUEUED, RECEIPT.c.consumer == _OLDEST_QUEUES.c.id)
    .scalar_subquery()
)
_LONGEST = (
    select(_OLDEST_QUEUES.c.id, _FIRST_KEY, EVENT.c.recorded, _OLDEST_QUEUES.c.all)
    .join(EVENT, EVENT.c.sequence == _OLDEST_QUEUES.c.first)
    .order_by(_OLDEST_QUEUES.c.first, _OLDEST_QUEUES.c.id)
)
_LAST_EVENT = select(LEDGER.c.last_event)


@dataclass(frozen=True)
class WaitingQueue:
    """A queue that waits: since when its oldest event is recorded, and for what, as a sentence without its subject."""

    consumer: str
    target_key: str | None
    words: str
    since: datetime


def words_of_queues(
    connection: Connection, places: Collection[tuple[int, str | None]], now: datetime
) -> dict[tuple[int, str | None], tuple[str, str | None, str]]:
    """Return, for each of these queues, its consumer's name, its target key, and why it starts no run.

    The queues of removed consumers are left out.
    """
    state = State(QueueSource(connection))
    state.begin(connection.execute(_LAST_EVENT).scalar_one() + 1, now)
    state.consumers.load_ids(number for number, _ in places)
    state.queues.load(places)
    state.names.load(dict.fromkeys(uri for place in places for uri in state.queues.pending(*place)))
    return {
        (number, key): (consumer.name, key, why_it_waits(state, consumer, key, now))
        for number, key in places
        if (consumer := state.consumers.find(number)) is not None
    }


@dataclass(frozen=True)
class Past:
    """A consumer as it was at a moment.

    Attributes:
        queues: what was queued, by target key.
        last, next: the numbers of its last decision by then, and of the first one afterwards; `None` if there is none.
        running: the target keys of which a run went on.
        dropped: how many updates it had refused since its last decision, because it was paused.
    """

    queues: Mapping[str | None, QueuedEvents]
    last: int | None
    next: int | None
    running: frozenset[str | None]
    dropped: int


class PastReader(Topic):
    """Reads what was queued at a moment."""

    def at(self, consumer: Consumer, since: datetime, moment: datetime) -> Past:
        """Return a consumer as it was at a moment, by its present schedule.

        Parameters:
            since: since when updates count for it.
        """
        with self._connect() as connection:
            then = _Then(connection, consumer, since, moment)
            state = State(then)
            state.begin(LAST + 1)
            queues = {key: _queue(state, consumer, key, events, moment) for key, events in then.queues.items()}
            if not queues and consumer.is_timed and not consumer.schedule.is_partitioned:
                queues[None] = _queue(state, consumer, None, [], moment)
            return Past(queues, then.last, min(then.later, default=None), frozenset(then.running), then.dropped())

    def beginning(self, consumer: Consumer, since: datetime, moment: datetime) -> Beginning:
        """Return a consumer as it was at a moment, for a replay from then on.

        Parameters:
            since: since when updates count for it.
        """
        with self._connect() as connection:
            then = _Then(connection, consumer, since, moment)
            clocks = {key: clock for (_, key), clock in then.queue_clocks(())}
            hours = dict(then.consumer_clocks(())).get(consumer.id)
            return Beginning(then.queues, clocks, hours, frozenset(then.running))


def _queue(
    state: State, consumer: Consumer, key: str | None, events: list[AssetEvent], moment: datetime
) -> QueuedEvents:
    waiting = waiting_of(state, consumer, key, moment) if consumer.is_timed else None
    return QueuedEvents(events, Counter(event.uri for event in events), key, waiting)


class _Then(QueueSource):
    """The tables, with the queues of one consumer and its clocks as they were at a moment."""

    def __init__(self, connection: Connection, consumer: Consumer, since: datetime, moment: datetime) -> None:
        super().__init__(connection)
        self.consumer = consumer
        self.since = since
        self.moment = moment
        self.last: int | None = connection.scalar(_LAST_DECISION, self._values())
        self.later = connection.scalars(_LATER, self._values(last=self.last or 0)).all()
        opened = connection.execute(_OPEN, self._values()).all()
        self.running = [key for key, ends in opened if not any(end <= moment < again for end, again in ends or ())]
        self.queues = self._queues()

    def dropped(self) -> int:
        """Return how many updates were refused between the last decision and the moment."""
        made = self.connection.scalar(select(DECISION.c.made).where(DECISION.c.number == self.last))
        after = self.since if made is None else max(made, self.since)
        return self.connection.execute(_DROPPED, self._values(**self._span(), since=after)).scalar_one()

    def _queues(self) -> dict[str | None, list[AssetEvent]]:
        found: dict[tuple[int, str | None], AssetEvent] = {}
        queries: list[tuple[Select[Any], dict[str, Any]]] = [
            (_STILL_QUEUED, {}),
            (_CONSUMED_LATER, {"decisions": self.later}),
            (_TAKEN_LATER, self._span()),
        ]
        for query, values in queries:
            for row in self.connection.execute(query, self._values(**values)):
                found[row.sequence, row[-1]] = event_from_row(row)
        in_order = sorted(found, key=lambda place: (place[1] or "", place[0]))
        return grouped((place[1], found[place]) for place in in_order)

    def _span(self) -> dict[str, int]:
        place = self.connection.scalar(_PLACE, self._values()) or 0
        # An event may be recorded somewhat later, or earlier, than others that occurred at the same time.
        return {"first": place - LOOKED_BACK, "place": place + LOOKED_BACK // 10}

    def _values(self, **more: Any) -> dict[str, Any]:
        return {"consumer": self.consumer.id, "moment": self.moment} | more

    def pending_keys(self, consumer: int) -> Iterable[str | None]:
        return list(self.queues)

    def counts(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, str, str | None, int]]:
        for key, events in self.queues.items():
            counted = Counter((event.uri, event.partition_key) for event in events)
            for (uri, part), number in counted.items():
                yield (self.consumer.id, key), uri, part, number

    def queued(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, int]]:
        for key, events in self.queues.items():
            yield from (((self.consumer.id, key), event.sequence or 0) for event in events)

    def busy(self, consumers: Collection[int]) -> Iterable[QueueKey]:
        return [(self.consumer.id, key) for key in self.running]

    def consumer_clocks(self, consumers: Collection[int]) -> Iterable[tuple[int, ConsumerClock]]:
        clock = _hours(self.consumer, self.since, self.moment)
        return [] if clock is None else [(self.consumer.id, clock)]

    def queue_clocks(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, QueueClock]]:
        numbers = [number for _, number in self.connection.execute(_DECIDED, self._values())]
        for key, made, scheduled, opening in self.connection.execute(_CLOCKS, {"numbers": numbers}):
            clock = QueueClock(closed=opening, decided=made, started=scheduled or made)
            yield (self.consumer.id, key), clock


def _hours(consumer: Consumer, since: datetime, moment: datetime) -> ConsumerClock | None:
    """Return the opening hours of a consumer at a moment, by its present schedule; `None` if it has none."""
    opening = consumer.schedule.opening
    if opening is None:
        return None
    latest = opening.timetable.previous_before(moment + _INSTANT)
    if latest is None or latest.time < since:
        return ConsumerClock(moment)
    closes = None if opening.until is None else opening.until.next_after(latest.time)
    return ConsumerClock(moment, latest.time, is_open=closes is None or closes.time > moment)
