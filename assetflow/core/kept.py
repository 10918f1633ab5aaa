"""Dictionaries that read what they do not know: `Mirror`, and `Kept`, which forgets the least recently used entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
Read = Callable[[Collection[K]], Iterable[tuple[K, V]]]
"""Reads the values of some keys at once."""


class Mirror(dict[K, V]):
    """A dictionary that reads the values of keys when somebody asks for them the first time.

    Parameters:
        read: returns those of some keys that exist, each with its value.
        absent: the value of a key that does not exist.
    """

    def __init__(self, read: Read[K, V], absent: V) -> None:
        super().__init__()
        self._read = read
        self._absent = absent

    @classmethod
    def one_by_one(cls, find: Callable[[K], V | None]) -> Mirror[K, V | None]:
        """Return a mirror that asks for each key alone."""
        return Mirror[K, V | None](lambda keys: ((key, find(key)) for key in keys), None)

    def __missing__(self, key: K) -> V:
        self.load((key,))
        return self[key]

    def load(self, keys: Iterable[K]) -> None:
        """Read the values of these keys together, unless they are known."""
        missing = {key: self._absent for key in keys if key not in self}
        if missing:
            self.update(missing)
            self.update(self._read(missing))


class Kept(dict[K, V]):
    """A dictionary with two generations of entries: an old entry that is used becomes a young one.

    When more than `limit` bytes were added, `renew` forgets the old generation and makes the young one old. Nothing is
    forgotten between two calls of `renew`. After a call, at most twice `limit` bytes are kept, and what one unit of
    work added.

    Parameters:
        limit: how many bytes may be added before the generations change.
        weigh: returns about how many bytes an entry takes.
        read: returns those of some keys that exist, each with its value; `None` if nothing is read.
    """

    def __init__(self, limit: int, weigh: Callable[[V], int], read: Read[K, V] | None = None) -> None:
        super().__init__()
        self._limit = limit
        self._weigh = weigh
        self._read = read
        self._added = 0
        self._old: dict[K, V] = {}

    def __missing__(self, key: K) -> V:
        if key in self._old:
            self.keep(key, self._old.pop(key))
        else:
            self.load((key,))
        if key not in self:
            raise KeyError(key)
        return self[key]

    def load(self, keys: Iterable[K]) -> None:
        """Read the values of these keys together, unless they are kept."""
        missing = self.unknown(keys)
        if missing and self._read is not None:
            for key, value in self._read(missing):
                self.keep(key, value)

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
