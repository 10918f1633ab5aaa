"""One queue in the ledger's book."""

from __future__ import annotations

from collections.abc import Iterator

from assetflow.core.events import AssetEvent

MOST_EVENTS = 100


class Queue:
    """What is queued for one consumer and key.

    Attributes:
        pending: the short form: URI to key to number of events.
        events: the events by sequence; unless `complete`, only those of this transaction.
    """

    __slots__ = ("_before", "complete", "events", "pending")

    def __init__(self) -> None:
        self.pending: dict[str, dict[str | None, int]] = {}
        self.events: dict[int, AssetEvent] = {}
        self.complete = True
        # The numbers in the table of what is another number now, or was meanwhile.
        self._before: dict[tuple[str, str | None], int] = {}

    def stored(self, uri: str, key: str | None, count: int) -> None:
        """Take over a row of the table."""
        self.pending.setdefault(uri, {})[key] = count
        self.complete = False

    def add(self, sequence: int, event: AssetEvent) -> None:
        """Queue an event, if it is not queued."""
        if sequence in self.events:
            return
        self.events[sequence] = event
        uri, key = event.asset.uri, event.partition_key
        keys = self.pending.setdefault(uri, {})
        count = keys.get(key, 0)
        self._before.setdefault((uri, key), count)
        keys[key] = count + 1

    def discard(self, sequence: int) -> None:
        """Take an event out, if it is queued."""
        event = self.events.pop(sequence, None)
        if event is None:
            return
        uri, key = event.asset.uri, event.partition_key
        keys = self.pending[uri]
        count = keys[key]
        self._before.setdefault((uri, key), count)
        if count > 1:
            keys[key] = count - 1
            return
        del keys[key]
        if not keys:
            del self.pending[uri]

    def changes(self) -> Iterator[tuple[str, str | None, int]]:
        """URI, key and number of events, where it is another number than in the table."""
        for (uri, key), before in self._before.items():
            count = self.pending.get(uri, {}).get(key, 0)
            if count != before:
                yield uri, key, count

    def settle(self) -> None:
        """The changes are in the table. A long queue is not kept in full: it may wait for ever, and grow."""
        self._before.clear()
        if self.complete and len(self.events) > MOST_EVENTS:
            self.complete = False
        if not self.complete:
            self.events.clear()
