"""The status of items and assets: missing, stale with its causes, or fresh; and whether anything above is not (8.9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from assetflow.core.freshness.causes import Cause
from assetflow.core.freshness.counting import count_states
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import items_read
from assetflow.core.freshness.records import Item, ItemState
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.status import causes_of, target_key_of

T = TypeVar("T")


@dataclass(frozen=True)
class ItemStatus:
    """The status of an item."""

    state: ItemState
    causes: tuple[Cause, ...] = ()
    outdated: bool = False


@dataclass(frozen=True)
class ItemCounts:
    """How many items of an asset with keys are in which state, and whether one of them is outdated."""

    states: Mapping[ItemState, int]
    outdated: bool


class Statuses:
    """The statuses of items and assets, each worked out once.

    Parameters:
        most: how many causes of an item to find; all by default.
    """

    def __init__(self, book: Book, most: int | None = None) -> None:
        self._book = book
        self._most = most
        self._fresh: dict[Item, bool] = {}
        self._counted: dict[str, Counter[ItemState]] = {}
        self._outdated: dict[Item, bool] = {}
        self._behind: dict[str, bool] = {}

    def of(self, item: Item) -> ItemStatus:
        """Return the status of an item."""
        maker = self._book.graph.maker(item.uri)
        if maker is None:
            is_there = self._book.updates.has_items(item.uri)
            return ItemStatus("source" if is_there else "unknown")
        causes = tuple(islice(causes_of(self._book, maker, item), self._most))
        self._fresh[item] = not causes
        return ItemStatus(_state(causes), causes, self._is_outdated(item))

    def counts(self, uri: str) -> ItemCounts | None:
        """Return how many items of an asset with keys are in which state; `None` for any other asset."""
        maker = self._book.graph.maker(uri)
        if maker is None or not self._has_keys(maker, uri):
            return None
        states = self._states(maker, uri)
        return ItemCounts(states, states["fresh"] < states.total() or self._is_any_outdated(maker, uri))

    def _has_keys(self, maker: FlowNode, uri: str) -> bool:
        return maker.is_partitioned or self._book.updates.count_keys(uri) > 0

    def _states(self, maker: FlowNode, uri: str) -> Counter[ItemState]:
        if uri not in self._counted:
            self._counted[uri] = count_states(self._book, maker, uri, self._state)
        return self._counted[uri]

    def _state(self, item: Item) -> ItemState:
        if self._book.updates.newest(item) is None:
            return "missing"
        return "fresh" if self._is_fresh(item) else "stale"

    def _is_fresh(self, item: Item) -> bool:
        if item not in self._fresh:
            maker = self._book.graph.maker(item.uri)
            self._fresh[item] = maker is None or next(causes_of(self._book, maker, item), None) is None
        return self._fresh[item]

    def _is_any_outdated(self, maker: FlowNode, uri: str) -> bool:
        """Return True if an item of an asset is outdated of which every item is fresh."""
        if all(map(self._is_current, maker.outputs[uri])):
            return False
        return any(self._is_outdated(Item(uri, key)) for key in reversed(self._book.updates.keys(uri)))

    def _is_outdated(self, item: Item) -> bool:
        """Return True if an item or one above is not fresh."""
        return reaches(item, lambda each: not self._is_fresh(each), self._above, self._outdated)

    def _above(self, item: Item) -> Iterator[Item]:
        maker = self._book.graph.maker(item.uri)
        if maker is not None:
            for uri in sorted(maker.outputs[item.uri]):
                if not self._is_current(uri):
                    yield from items_read(self._book, maker, target_key_of(maker, item.key), uri)

    def _is_current(self, uri: str) -> bool:
        """Return True if no item of an asset, nor of any above, is stale: then nothing that reads it is outdated."""
        return not reaches(uri, self._has_stale, self._assets_above, self._behind)

    def _assets_above(self, uri: str) -> Iterable[str]:
        maker = self._book.graph.maker(uri)
        return () if maker is None else maker.outputs[uri]

    def _has_stale(self, uri: str) -> bool:
        maker = self._book.graph.maker(uri)
        if maker is None:
            return False
        if self._has_keys(maker, uri) and self._states(maker, uri)["stale"]:
            return True
        whole = Item(uri)
        return self._book.updates.newest(whole) is not None and not self._is_fresh(whole)


def reaches(start: T, is_wanted: Callable[[T], bool], above: Callable[[T], Iterable[T]], known: dict[T, bool]) -> bool:
    """Return True if a node is wanted, or one above it; with a stack of its own, because graphs may be deep.

    Parameters:
        known: what earlier calls found of nodes. What this call finds is added, so that each node is walked once.
    """
    waiting, came_from = [start], dict[T, T | None]({start: None})
    while waiting:
        current = waiting.pop()
        if known[current] if current in known else is_wanted(current):
            step: T | None = current
            while step is not None:
                known[step] = True
                step = came_from[step]
            return True
        for each in above(current) if current not in known else ():
            if each not in came_from:
                came_from[each] = current
                waiting.append(each)
    known |= dict.fromkeys(came_from, False)
    return False


def status_of(book: Book, item: Item) -> ItemStatus:
    """Return the status of an item."""
    return Statuses(book).of(item)


def counts_of(book: Book, uri: str) -> ItemCounts | None:
    """Return how many items of an asset with keys are in which state; `None` for any other asset."""
    return Statuses(book).counts(uri)


def _state(causes: tuple[Cause, ...]) -> ItemState:
    if not causes:
        return "fresh"
    return "missing" if causes[0].kind == "missing" else "stale"
