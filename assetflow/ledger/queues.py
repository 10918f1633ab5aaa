"""Queues in the ledger's book."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from sqlalchemy import select

from assetflow.core.book import Pending
from assetflow.core.consumers import Decision, Receipt
from assetflow.core.events import AssetEvent
from assetflow.core.fold import place_in_ledger
from assetflow.ledger.among import among
from assetflow.ledger.bulk import delete_rows, upsert_rows
from assetflow.ledger.queue import Queue
from assetflow.ledger.receipts import Receipts
from assetflow.ledger.recent import RecentEvents
from assetflow.ledger.rows import (
    EVENT_COLUMNS,
    QUEUED,
    event_from_row,
    key_from_column,
    key_to_column,
)
from assetflow.ledger.tables import EVENT, PENDING, RECEIPT
from assetflow.ledger.work import Work

QueueKey = tuple[int, str | None]
# Consumer, target key, URI and key of the events, as columns: a row of the short form.
Place = tuple[int, str, str, str]

_PENDING_KEY = (PENDING.c.consumer, PENDING.c.target_key, PENDING.c.uri, PENDING.c.source_key)
_COUNT = upsert_rows(_PENDING_KEY, (PENDING.c.count,))
_DROP_PENDING = delete_rows(_PENDING_KEY)
_QUEUED = select(RECEIPT.c.sequence, RECEIPT.c.consumer, RECEIPT.c.target_key).where(RECEIPT.c.status == QUEUED)
_EVENTS = select(*EVENT_COLUMNS).where(among(EVENT.c.sequence, "sequences"))
_PENDING = select(*_PENDING_KEY, PENDING.c.count)
_OF_QUEUES = _PENDING.where(among(PENDING.c.consumer, "consumers"), among(PENDING.c.target_key, "keys"))
_QUEUED_IN = _QUEUED.where(among(RECEIPT.c.consumer, "consumers"), among(RECEIPT.c.target_key, "keys"))


class Queues:
    """What is queued for whom, in short and in full, and the receipts: read when asked for, written by `flush`."""

    def __init__(self, work: Work, recent: RecentEvents) -> None:
        self._work = work
        self._recent = recent
        self.receipts = Receipts(work)
        self._queues: dict[QueueKey, Queue] = {}
        # What this transaction writes.
        self._counts: dict[Place, tuple[int, int]] = {}  # the number in the table, and the one now
        self._unsettled: dict[QueueKey, Queue] = {}

    def __len__(self) -> int:
        return len(self._queues)

    def is_known(self, key: QueueKey) -> bool:
        """Whether nothing has to be read to know what is queued."""
        queue = self._queues.get(key)
        return queue is not None and queue.complete

    def load(self, keys: Iterable[QueueKey]) -> None:
        """Read these queues in short, as far as they are not known yet."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._queues]
        if not missing:
            return
        self._queues |= {key: Queue() for key in missing}
        wanted = set(missing)
        rows = self._work.connection.execute(_OF_QUEUES, _names(missing)).all()
        for consumer, target_key, uri, source_key, count in rows:
            key = (consumer, key_from_column(target_key))
            if key in wanted:
                self._queues[key].stored(uri, key_from_column(source_key), count)

    def load_events(self, keys: Iterable[QueueKey]) -> None:
        """Read the events of these queues, as far as they are not known yet."""
        keys = list(dict.fromkeys(keys))
        self.load(keys)
        missing = [key for key in keys if not self._queues[key].complete]
        if not missing:
            return
        self._take(_QUEUED_IN, _names(missing), set(missing))
        self._complete(missing)

    def load_all(self, consumer: int) -> None:
        """Read all queues of a consumer, in short and in full."""
        keys = [(consumer, key) for key in self.target_keys(consumer)]
        found = self._work.connection.execute(_PENDING.where(PENDING.c.consumer == consumer)).all()
        missing = {key for key in keys if key not in self._queues}
        self._queues |= {key: Queue() for key in missing}
        for _, target_key, uri, source_key, count in found:
            key = (consumer, key_from_column(target_key))
            if key in missing:
                self._queues[key].stored(uri, key_from_column(source_key), count)
        wanted = {key for key in keys if not self._queues[key].complete}
        self._take(_QUEUED.where(RECEIPT.c.consumer == consumer), {}, wanted)
        self._complete(wanted)

    def _complete(self, keys: Iterable[QueueKey]) -> None:
        for key in keys:
            queue = self._queues[key]
            queue.complete = True
            if not queue.is_settled:
                self._unsettled[key] = queue

    def _take(self, query: Any, parameters: dict[str, Any], wanted: Collection[QueueKey]) -> None:
        rows = cast("Sequence[Sequence[Any]]", self._work.connection.execute(query, parameters).all())
        found = [(row[0], (row[1], key_from_column(row[2]))) for row in rows]
        places = [(sequence, key) for sequence, key in found if key in wanted]
        events = self._events_at(dict.fromkeys(sequence for sequence, _ in places))
        for sequence, key in places:
            self._queues[key].events[sequence] = events[sequence]

    def _events_at(self, sequences: Collection[int]) -> dict[int, AssetEvent]:
        events = self._recent.among(sequences)
        missing = [sequence for sequence in sequences if sequence not in events]
        if missing:
            read = [event_from_row(row) for row in self._work.connection.execute(_EVENTS, {"sequences": missing}).all()]
            self._recent.keep(read)
            events |= {place_in_ledger(event): event for event in read}
        return events

    def _queue(self, consumer: int, target_key: str | None) -> Queue:
        key = (consumer, target_key)
        if key not in self._queues:
            self.load([key])
        return self._queues[key]

    def pending(self, consumer: int, target_key: str | None) -> Pending:
        return self._queue(consumer, target_key).pending

    def size(self, consumer: int, target_key: str | None) -> int:
        """How many events are queued."""
        return sum(sum(keys.values()) for keys in self._queue(consumer, target_key).pending.values())

    def target_keys(self, consumer: int) -> Collection[str | None]:
        stored = select(PENDING.c.target_key).where(PENDING.c.consumer == consumer).distinct()
        found = {key_from_column(key): None for key in self._work.connection.scalars(stored)}
        for number, column, *_ in self._counts:
            if number == consumer:
                key = key_from_column(column)
                if self._queues[number, key].pending:
                    found[key] = None
                else:
                    found.pop(key, None)
        return list(found)

    def queued(self, consumer: int, target_key: str | None) -> Sequence[AssetEvent]:
        self.load_events([(consumer, target_key)])
        events = self._queues[consumer, target_key].events
        return [events[sequence] for sequence in sorted(events)]

    def write(self, event: AssetEvent, receipt: Receipt) -> None:
        consumer = receipt.consumer
        if consumer is not None:
            if receipt.status == "queued":
                self._put_in(event, consumer, receipt.target_key)
            else:
                self._take_out(event, consumer, receipt.target_key)
        self.receipts.write(receipt)

    def consume(self, decision: Decision, number: int) -> None:
        """Take out the events that the decision with this number consumes, and write their receipts."""
        if not decision.events:
            return
        consumer, key = decision.consumer, decision.target_key
        self.load_events([(consumer, key)])
        queue = self._queues[consumer, key]
        for event in decision.events:
            self._discard(event, consumer, key, queue)
            self.receipts.consume(event, decision, number)

    def unqueue(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        self._take_out(event, consumer, target_key)
        self.receipts.drop(place_in_ledger(event), consumer, target_key)

    def _put_in(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        queue = self._queue_of(event, consumer, target_key)
        count = queue.add(place_in_ledger(event), event)
        if count is not None:
            self._count(event, consumer, target_key, queue, count - 1, count)

    def _take_out(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        # A new event is queued at most in a queue that was read already.
        if place_in_ledger(event) < self._work.first or (consumer, target_key) in self._queues:
            self._discard(event, consumer, target_key, self._queue_of(event, consumer, target_key))

    def _discard(self, event: AssetEvent, consumer: int, target_key: str | None, queue: Queue) -> None:
        left = queue.discard(place_in_ledger(event))
        if left is not None:
            self._count(event, consumer, target_key, queue, left + 1, left)

    def _queue_of(self, event: AssetEvent, consumer: int, target_key: str | None) -> Queue:
        """The queue, to be changed."""
        # Whether an older event is queued can be known only when the whole queue is.
        if place_in_ledger(event) < self._work.first:
            self.load_events([(consumer, target_key)])
        return self._queue(consumer, target_key)

    def _count(
        self, event: AssetEvent, consumer: int, target_key: str | None, queue: Queue, before: int, now: int
    ) -> None:
        place = (consumer, key_to_column(target_key), event.asset.uri, key_to_column(event.partition_key))
        known = self._counts.get(place)
        self._counts[place] = (before if known is None else known[0], now)
        if not queue.is_settled:
            self._unsettled[consumer, target_key] = queue

    def flush(self, numbers: Mapping[UUID, int]) -> None:
        """Write receipts and queues.

        Parameters:
            numbers: the numbers of the decisions made in this transaction.
        """
        self.receipts.flush(numbers)
        self._flush_counts()
        for queue in self._unsettled.values():
            queue.settle()
        self._unsettled.clear()

    def _flush_counts(self) -> None:
        counts: list[tuple[int, str, str, str, int]] = []
        gone: list[Place] = []
        for place, (before, now) in self._counts.items():
            if now == before:
                continue
            if now:
                counts.append((*place, now))
            else:
                gone.append(place)
        self._counts.clear()
        # In the order of the table: neighbours share its pages.
        _DROP_PENDING.run(self._work.connection, sorted(gone))
        _COUNT.run(self._work.connection, sorted(counts))


def _names(keys: Iterable[QueueKey]) -> dict[str, Any]:
    """The parameters that find at least these queues."""
    keys = list(keys)
    return {
        "consumers": dict.fromkeys(consumer for consumer, _ in keys),
        "keys": dict.fromkeys(key_to_column(key) for _, key in keys),
    }
