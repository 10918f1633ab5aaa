"""One queue in a unit of work."""

from __future__ import annotations

from collections.abc import Iterator

from assetflow.core.events import AssetEvent


class Queue:
    """What is queued for one consumer and key.

    Attributes:
        pending: the short form: URI to key to number of events.
        events: the events by sequence; unless `complete`, only those of this unit of work.
    """

    __slots__ = ("_stored", "complete", "events", "pending")

    def __init__(self) -> None:
        self.pending: dict[str, dict[str | None, int]] = {}
        self.events: dict[int, AssetEvent] = {}
        self.complete = True
        self._stored: dict[tuple[str, str | None], int] = {}

    def stored(self, uri: str, key: str | None, count: int) -> None:
        """Take over a row of the table."""
        self._stored[uri, key] = count
        self.pending.setdefault(uri, {})[key] = count
        self.complete = False

    def add(self, sequence: int, event: AssetEvent) -> None:
        """Queue an event, if it is not queued."""
        if sequence not in self.events:
            self.events[sequence] = event
            keys = self.pending.setdefault(event.uri, {})
            keys[event.partition_key] = keys.get(event.partition_key, 0) + 1

    def discard(self, sequence: int) -> None:
        """Take an event out, if it is queued."""
        event = self.events.pop(sequence, None)
        if event is None:
            return
        keys = self.pending[event.uri]
        keys[event.partition_key] -= 1
        if not keys[event.partition_key]:
            del keys[event.partition_key]
            if not keys:
                del self.pending[event.uri]

    def changes(self) -> Iterator[tuple[str, str | None, int]]:
        """URI, key and number of events, where it is another number than in the table."""
        for uri, key in self._stored:
            if key not in self.pending.get(uri, ()):
                yield uri, key, 0
        for uri, keys in self.pending.items():
            for key, count in keys.items():
                if self._stored.get((uri, key)) != count:
                    yield uri, key, count
