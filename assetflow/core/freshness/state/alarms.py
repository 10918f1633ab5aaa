"""Alarms: when something has to be looked at, the next one found without going through all."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from heapq import heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Alarms(Generic[K]):
    """For each of some keys, the moment at which it has to be looked at."""

    def __init__(self) -> None:
        self._moments: dict[K, datetime] = {}
        # In the order of time; entries whose key has another moment by now are void.
        self._heap: list[tuple[datetime, int, K]] = []
        self._count = 0

    def set(self, key: K, moment: datetime | None) -> None:
        """Set when a key is due; `None` cancels its alarm."""
        if moment is None:
            self._moments.pop(key, None)
        elif self._moments.get(key) != moment:
            self._moments[key] = moment
            self._count += 1
            heappush(self._heap, (moment, self._count, key))

    def next(self) -> datetime | None:
        """Return the earliest moment; `None` without alarms."""
        while self._heap:
            moment, _, key = self._heap[0]
            if self._moments.get(key) == moment:
                return moment
            heappop(self._heap)
        return None

    def take(self, until: datetime) -> list[K]:
        """Remove and return the keys that are due, earliest first."""
        found: list[K] = []
        while (moment := self.next()) is not None and moment <= until:
            _, _, key = heappop(self._heap)
            del self._moments[key]
            found.append(key)
        return found
