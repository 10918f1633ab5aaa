"""One queue in the ledger's book."""

from __future__ import annotations

from assetflow.core.events import AssetEvent

MOST_EVENTS = 100

# One event without a key: what most queues hold of an asset. Never changed, so that all of them can share it.
_ONE_PLAIN: dict[str | None, int] = {None: 1}


class Queue:
    """What is queued for one consumer and key.

    Attributes:
        pending: the short form: URI to key to number of events.
        events: the events by sequence; unless `complete`, only those of this transaction.
    """

    __slots__ = ("complete", "events", "pending")

    def __init__(self) -> None:
        self.pending: dict[str, dict[str | None, int]] = {}
        self.events: dict[int, AssetEvent] = {}
        self.complete = True

    def stored(self, uri: str, key: str | None, count: int) -> None:
        """Take over a row of the table."""
        self._own(uri, self.pending.get(uri, {}))[key] = count
        self.complete = False

    def add(self, sequence: int, event: AssetEvent) -> int | None:
        """Queue an event: how many of its asset and key there are now, none if it is queued already."""
        if sequence in self.events:
            return None
        self.events[sequence] = event
        uri, key = event.asset.uri, event.partition_key
        keys = self.pending.get(uri)
        if keys is None and key is None:
            self.pending[uri] = _ONE_PLAIN
            return 1
        keys = self._own(uri, keys or {})
        count = keys[key] = keys.get(key, 0) + 1
        return count

    def discard(self, sequence: int) -> int | None:
        """Take an event out: how many of its asset and key are left, none if it is not queued."""
        event = self.events.pop(sequence, None)
        if event is None:
            return None
        uri, key = event.asset.uri, event.partition_key
        keys = self.pending[uri]
        count = keys[key] - 1
        if count:
            self._own(uri, keys)[key] = count
        elif len(keys) > 1:
            del keys[key]
        else:
            del self.pending[uri]
        return count

    def _own(self, uri: str, keys: dict[str | None, int]) -> dict[str | None, int]:
        """The numbers of an asset's keys, in a dictionary of this queue's own, which may be changed."""
        if keys is _ONE_PLAIN or not keys:
            keys = self.pending[uri] = dict(keys)
        return keys

    @property
    def is_settled(self) -> bool:
        """Whether it may stay in memory as it is. A long queue is not kept in full: it may wait for ever, and grow."""
        return self.complete and len(self.events) <= MOST_EVENTS

    def settle(self) -> None:
        """Keep no more than may stay; what this transaction added is in the tables now."""
        if not self.is_settled:
            self.complete = False
            self.events.clear()
