"""A dictionary that forgets the least recently used entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Kept(dict[K, V]):
    """A dictionary with two generations of entries: an old entry that is used becomes a young one.

    When more than `limit` bytes were added, `renew` forgets the old generation and makes the young one old. Nothing is
    forgotten between two calls of `renew`. After a call, at most twice `limit` bytes are kept, and what one unit of
    work added.

    Parameters:
        limit: how many bytes may be added before the generations change.
        weigh: returns about how many bytes an entry takes.
    """

    def __init__(self, limit: int, weigh: Callable[[V], int]) -> None:
        super().__init__()
        self._limit = limit
        self._weigh = weigh
        self._added = 0
        self._old: dict[K, V] = {}

    def __missing__(self, key: K) -> V:
        found = self._old.pop(key)
        self.keep(key, found)
        return found

    def keep(self, key: K, value: V) -> None:
        """Keep a value for a key, in place of the one before it."""
        self[key] = value
        self._added += self._weigh(value)

    def grew(self, size: int) -> None:
        """Count bytes that were added to a kept value."""
        self._added += size

    def find(self, key: K) -> V | None:
        """Return the value of a key, or `None` if it is not kept."""
        found = self.get(key)
        return self[key] if found is None and key in self._old else found

    def unknown(self, keys: Iterable[K]) -> dict[K, None]:
        """Return those of these keys, each once, that are not kept."""
        return {key: None for key in keys if key not in self and key not in self._old}

    def forget(self, keys: Iterable[K]) -> None:
        """Forget these keys."""
        for key in keys:
            self.pop(key, None)
            self._old.pop(key, None)

    def forget_all(self) -> None:
        """Forget everything."""
        self.clear()
        self._old.clear()
        self._added = 0

    def renew(self) -> None:
        """Forget the old generation and make the young one old, if more than the limit was added."""
        if self._added > self._limit:
            self._old = dict(self)
            self.clear()
            self._added = 0


def weight_of_json(data: object) -> int:
    """Return about how many bytes JSON data takes in memory; 0 if it is empty."""
    # The written form takes a few times less than the data does.
    return 200 + 4 * len(repr(data)) if data else 0
