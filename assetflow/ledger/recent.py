"""The events of late, kept in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from assetflow.core.events import AssetEvent


class RecentEvents:
    """Committed events by sequence, as many as fit: most decisions consume events that came shortly before.

    An event never changes and its sequence is never used again, so what is kept here cannot become wrong.
    """

    def __init__(self, size: int = 10_000) -> None:
        self._size = size
        # Of a plain dict the first key is found by a walk past all that were deleted before it.
        self._events: OrderedDict[int, AssetEvent] = OrderedDict()

    def keep(self, events: Iterable[AssetEvent]) -> None:
        """Keep committed events; those that were kept longest make room."""
        self._events.update((event.sequence, event) for event in events if event.sequence is not None)
        while len(self._events) > self._size:
            self._events.popitem(last=False)

    def among(self, sequences: Iterable[int]) -> dict[int, AssetEvent]:
        """Those of these events that are kept."""
        return {number: self._events[number] for number in sequences if number in self._events}
