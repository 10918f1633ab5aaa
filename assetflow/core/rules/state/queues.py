"""The queues in the state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from assetflow.core.kept import Kept
from assetflow.core.rules.evaluation import Pending
from assetflow.core.rules.state.changes import Changes, QueueKey, Source
from assetflow.core.rules.state.names import Events, place_in_ledger
from assetflow.core.values.events import AssetEvent

LONG = 100
"""Of a longer queue only the counts are remembered, because it may wait for ever and grow."""


class Queue:
    """The events queued for one consumer and target key.

    Attributes:
        counts: URI to key to number of events.
        size: the number of all queued events.
        sequences: the sequences of the queued events. If only the counts were read, it has only the events that were
            queued since.
    """

    __slots__ = ("counts", "sequences", "size")

    def __init__(self) -> None:
        self.counts: dict[str, dict[str | None, int]] = {}
        self.size = 0
        self.sequences: set[int] = set()

    def count(self, uri: str, key: str | None, change: int) -> int:
        """Add `change` to the number of events of an asset and key, and return the number before."""
        keys = self.counts.get(uri)
        if keys is None:
            keys = self.counts[uri] = {}
        before = keys.get(key, 0)
        self.size += change
        if before + change:
            keys[key] = before + change
        elif len(keys) > 1:
            del keys[key]
        else:
            del self.counts[uri]
        return before

    @property
    def is_read(self) -> bool:
        """True if `sequences` has all queued events."""
        return len(self.sequences) == self.size


def _weight(queue: Queue) -> int:
    places = sum(map(len, queue.counts.values()))
    return 600 + 300 * places + 100 * len(queue.sequences)


class Queues:
    """The queues. Their counts are read when they are needed, their events only when a decision consumes them."""

    def __init__(self, source: Source, changes: Changes, events: Events, limit: int) -> None:
        self._source = source
        self._changes = changes
        self._events = events
        self._queues = Kept[QueueKey, Queue](limit, _weight, self._read_counts)
        self._long: set[QueueKey] = set()
        # The keys that were pending before the unit of work, by consumer.
        self._stored_keys: dict[int, Collection[str | None]] = {}

    def load(self, keys: Iterable[QueueKey]) -> None:
        """Read the counts of these queues, unless they are remembered."""
        self._queues.load(keys)

    def load_events(self, keys: Iterable[QueueKey]) -> None:
        """Read the events of these queues, unless they are remembered."""
        keys = list(dict.fromkeys(keys))
        self.load(keys)
        missing = {key for key in keys if not self._queues[key].is_read}
        if missing:
            for key, sequence in self._source.queued(missing):
                if key in missing:
                    self._queues[key].sequences.add(sequence)
            self._long |= {key for key in missing if self._queues[key].size > LONG}
            self._queues.grew(100 * sum(self._queues[key].size for key in missing))
        self._events.load_bodies(sequence for key in keys for sequence in self._queues[key].sequences)

    def is_read(self, key: QueueKey) -> bool:
        """Return True if it is remembered which events are in a queue."""
        queue = self._queues.find(key)
        return queue is not None and queue.is_read

    def pending(self, consumer: int, target_key: str | None) -> Pending:
        """Return the summary of a queue: each URI with the keys of its events."""
        return self._queues[consumer, target_key].counts

    def size(self, consumer: int, target_key: str | None) -> int:
        """Return the number of queued events."""
        return self._queues[consumer, target_key].size

    def target_keys(self, consumer: int) -> Collection[str | None]:
        """Return the target keys under which events are queued; for a plain consumer `None` is the only one."""
        if consumer not in self._stored_keys:
            self._stored_keys[consumer] = tuple(self._source.pending_keys(consumer))
        found = dict.fromkeys(self._stored_keys[consumer])
        for number, target_key, *_ in self._changes.counts:
            if number == consumer:
                if self._queues[number, target_key].size:
                    found[target_key] = None
                else:
                    found.pop(target_key, None)
        return list(found)

    def queued(self, consumer: int, target_key: str | None) -> Sequence[AssetEvent]:
        """Return the queued events, oldest first."""
        return self._events.at(sorted(self._read((consumer, target_key)).sequences))

    def put(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        """Queue an event, unless it is queued already."""
        sequence, key = place_in_ledger(event), (consumer, target_key)
        # For an event of an earlier unit of work, all queued events have to be known to see whether it is among them.
        queue = self._queues[key] if sequence >= self._changes.first else self._read(key)
        if sequence not in queue.sequences:
            queue.sequences.add(sequence)
            self._count(queue, event, consumer, target_key, 1)

    def take(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        """Take an event out of a queue, if it is there."""
        key = (consumer, target_key)
        if place_in_ledger(event) < self._changes.first:
            self._take(self._read(key), event, consumer, target_key)
            return
        # An event of this unit of work can only be in a queue that was already read.
        queue = self._queues.find(key)
        if queue is not None:
            self._take(queue, event, consumer, target_key)

    def consume(self, events: Iterable[AssetEvent], consumer: int, target_key: str | None) -> None:
        """Take the events that a decision consumes out of their queue."""
        queue = self._read((consumer, target_key))
        for event in events:
            self._take(queue, event, consumer, target_key)

    def learn(self, queued: Iterable[tuple[QueueKey, int]], consumed: Iterable[tuple[QueueKey, int]]) -> None:
        """Apply what another process has queued and consumed; forget a queue if too little of it is remembered."""
        for key, sequence in queued:
            queue, event = self._queues.find(key), self._events.find(sequence)
            if queue is not None and event is not None:
                queue.sequences.add(sequence)
                queue.count(event.uri, event.partition_key, 1)
                self._queues.grew(100)
                if queue.size > LONG:
                    self._long.add(key)
        for key, sequence in consumed:
            queue, event = self._queues.find(key), self._events.find(sequence)
            if queue is not None and event is not None and sequence in queue.sequences:
                queue.sequences.discard(sequence)
                queue.count(event.uri, event.partition_key, -1)
            else:
                self._queues.forget([key])

    def renew(self) -> None:
        """Forget the events of long queues, and the least recently used queues if there are too many."""
        self._stored_keys.clear()
        # The next unit of work continues with the queue that has filled this one with decisions.
        for key in () if self._changes.is_full else self._long:
            queue = self._queues.find(key)
            if queue is not None:
                self._shorten(key, queue)
        if not self._changes.is_full:
            self._long.clear()
        self._queues.grew(100 * sum(now - before for before, now in self._changes.counts.values() if now > before))
        self._queues.renew()

    def _shorten(self, key: QueueKey, queue: Queue) -> None:
        if sum(map(len, queue.counts.values())) > LONG:
            self._queues.forget([key])
        else:
            queue.sequences.clear()

    def _read_counts(self, keys: Collection[QueueKey]) -> Iterable[tuple[QueueKey, Queue]]:
        found = {key: Queue() for key in keys}
        for queue, uri, key, count in self._source.counts(found):
            if queue in found:
                found[queue].count(uri, key, count)
        return found.items()

    def _read(self, key: QueueKey) -> Queue:
        """Return a queue of which all sequences are known."""
        queue = self._queues[key]
        if not queue.is_read:
            self.load_events([key])
        return queue

    def _take(self, queue: Queue, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        sequence = place_in_ledger(event)
        if sequence in queue.sequences:
            queue.sequences.discard(sequence)
            self._count(queue, event, consumer, target_key, -1)

    def _count(self, queue: Queue, event: AssetEvent, consumer: int, target_key: str | None, change: int) -> None:
        place = (consumer, target_key, event.asset.uri, event.partition_key)
        before = queue.count(place[2], place[3], change)
        known = self._changes.counts.get(place)
        self._changes.counts[place] = (before if known is None else known[0], before + change)
        if queue.size > LONG:
            self._long.add((consumer, target_key))
