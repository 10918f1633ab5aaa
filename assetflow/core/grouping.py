"""Values put together by what they have in common, or by which of them led to which."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key: keys in the order in which they come first, values in theirs."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def way_to(last: K, start: K, came_from: Mapping[K, K]) -> list[K]:
    """Return the way from a start to a value, both included.

    Parameters:
        came_from: each value on the way with the one before it.
    """
    way = [last]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]
