"""Queues as they were at a moment. Nothing keeps them: receipts say what became of each event, decisions when.

An event was queued at a moment if it was recorded by then, and left the queue later or not at all.
"""

# The source answers for the one consumer that its state is asked about.
# ruff: noqa: ARG002

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, func, or_, select

from assetflow.core.compare import Beginning
from assetflow.core.explain.facts import QueuedEvents, waiting_of
from assetflow.core.rules.state import QueueKey, State
from assetflow.core.rules.state.changes import ConsumerClock, QueueClock
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent
from assetflow.ledger.read import Topic
from assetflow.ledger.read.partitions import QueueSource
from assetflow.ledger.read.queues import LAST
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.rows import QUEUED, SHOWN_EVENT, event_from_row
from assetflow.ledger.sql.tables import DECISION, EVENT, RECEIPT

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
_EVENTS = (
    select(*SHOWN_EVENT, RECEIPT.c.target_key)
    .join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    .order_by(RECEIPT.c.sequence)
    .limit(MOST)
)
_STILL_QUEUED = _EVENTS.where(
    RECEIPT.c.consumer == bindparam("consumer"), RECEIPT.c.status == QUEUED, EVENT.c.recorded <= bindparam("moment")
)
_CONSUMED_LATER = _EVENTS.where(in_values(RECEIPT.c.decision, "decisions"), EVENT.c.recorded <= bindparam("moment"))
_TAKEN_LATER = _EVENTS.where(_BEFORE, RECEIPT.c.status.in_(_TAKEN_OUT), RECEIPT.c.at > bindparam("moment"))
_DROPPED = (
    select(func.count())
    .select_from(RECEIPT.join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence))
    .where(_BEFORE, RECEIPT.c.status == "dropped", EVENT.c.recorded > bindparam("since"))
)


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
            source = _SourceThen(connection, then)
            state = State(source)
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
            source = _SourceThen(connection, then)
            clocks = {key: clock for (_, key), clock in source.queue_clocks(())}
            hours = dict(source.consumer_clocks(())).get(consumer.id)
            return Beginning(then.queues, clocks, hours, frozenset(then.running))


def _queue(
    state: State, consumer: Consumer, key: str | None, events: list[AssetEvent], moment: datetime
) -> QueuedEvents:
    waiting = waiting_of(state, consumer, key, moment) if consumer.is_timed else None
    return QueuedEvents(events, Counter(event.uri for event in events), key, waiting)


class _Then:
    """The rows that say what was queued for a consumer at a moment."""

    def __init__(self, connection: Connection, consumer: Consumer, since: datetime, moment: datetime) -> None:
        self._connection = connection
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
        made = self._connection.scalar(select(DECISION.c.made).where(DECISION.c.number == self.last))
        after = self.since if made is None else max(made, self.since)
        return self._connection.execute(_DROPPED, self._values(**self._span(), since=after)).scalar_one()

    def clocks(self) -> Iterable[tuple[str | None, datetime, datetime | None, datetime | None]]:
        """Yield the last decision of each queue: target key, instant, when its run was to start, its opening."""
        numbers = [number for _, number in self._connection.execute(_DECIDED, self._values())]
        for key, *times in self._connection.execute(_CLOCKS, {"numbers": numbers}):
            yield key, times[0], times[1], times[2]

    def _queues(self) -> dict[str | None, list[AssetEvent]]:
        found: dict[tuple[int, str | None], AssetEvent] = {}
        queries: list[tuple[Select[Any], dict[str, Any]]] = [
            (_STILL_QUEUED, {}),
            (_CONSUMED_LATER, {"decisions": self.later}),
            (_TAKEN_LATER, self._span()),
        ]
        for query, values in queries:
            for row in self._connection.execute(query, self._values(**values)):
                found[row.sequence, row[-1]] = event_from_row(row)
        queues: dict[str | None, list[AssetEvent]] = {}
        for sequence, key in sorted(found, key=lambda place: (place[1] or "", place[0])):
            queues.setdefault(key, []).append(found[sequence, key])
        return queues

    def _span(self) -> dict[str, int]:
        place = self._connection.scalar(_PLACE, self._values()) or 0
        # An event may be recorded somewhat later, or earlier, than others that occurred at the same time.
        return {"first": place - LOOKED_BACK, "place": place + LOOKED_BACK // 10}

    def _values(self, **more: Any) -> dict[str, Any]:
        return {"consumer": self.consumer.id, "moment": self.moment} | more


class _SourceThen(QueueSource):
    """The tables, with the queues of one consumer and its clocks as they were at a moment."""

    def __init__(self, connection: Connection, then: _Then) -> None:
        super().__init__(connection)
        self._then = then

    def pending_keys(self, consumer: int) -> Iterable[str | None]:
        return list(self._then.queues)

    def counts(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, str, str | None, int]]:
        for key, events in self._then.queues.items():
            counted = Counter((event.uri, event.partition_key) for event in events)
            for (uri, part), number in counted.items():
                yield (self._then.consumer.id, key), uri, part, number

    def queued(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, int]]:
        for key, events in self._then.queues.items():
            yield from (((self._then.consumer.id, key), event.sequence or 0) for event in events)

    def busy(self, consumers: Collection[int]) -> Iterable[QueueKey]:
        return [(self._then.consumer.id, key) for key in self._then.running]

    def consumer_clocks(self, consumers: Collection[int]) -> Iterable[tuple[int, ConsumerClock]]:
        clock = _hours(self._then.consumer, self._then.since, self._then.moment)
        return [] if clock is None else [(self._then.consumer.id, clock)]

    def queue_clocks(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, QueueClock]]:
        for key, made, scheduled, opening in self._then.clocks():
            clock = QueueClock(closed=opening, decided=made, started=scheduled or made)
            yield (self._then.consumer.id, key), clock


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
