"""The status of items and assets: missing, stale with its causes, or fresh; and whether anything above is not (8.9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from assetflow.core.freshness.causes import Cause
from assetflow.core.freshness.counting import count_states
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import items_read
from assetflow.core.freshness.records import Item, ItemState
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.status import causes_of, target_key_of


@dataclass(frozen=True)
class ItemStatus:
    """The status of an item."""

    state: ItemState
    causes: tuple[Cause, ...] = ()
    outdated: bool = False


@dataclass(frozen=True)
class Counts:
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
        self._current: set[str] = set()

    def of(self, item: Item) -> ItemStatus:
        """Return the status of an item."""
        maker = self._book.graph.maker(item.uri)
        if maker is None:
            is_there = self._book.updates.has_items(item.uri)
            return ItemStatus("source" if is_there else "unknown")
        causes = tuple(islice(causes_of(self._book, maker, item), self._most))
        self._fresh[item] = not causes
        return ItemStatus(_state(causes), causes, self._is_outdated(item))

    def counts(self, uri: str) -> Counts | None:
        """Return how many items of an asset with keys are in which state; `None` for any other asset."""
        maker = self._book.graph.maker(uri)
        if maker is None or not self._has_keys(maker, uri):
            return None
        states = self._states(maker, uri)
        return Counts(states, states["fresh"] < states.total() or self._is_any_outdated(maker, uri))

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
        """Return True if an item or one above is not fresh; with a stack of its own, because graphs may be deep."""
        waiting, seen = [item], {item}
        while waiting:
            current = waiting.pop()
            if not self._is_fresh(current):
                return True
            for above in self._above(current):
                if above not in seen:
                    seen.add(above)
                    waiting.append(above)
        return False

    def _above(self, item: Item) -> Iterator[Item]:
        maker = self._book.graph.maker(item.uri)
        if maker is not None:
            for uri in sorted(maker.outputs[item.uri]):
                if not self._is_current(uri):
                    yield from items_read(self._book, maker, target_key_of(maker, item.key), uri)

    def _is_current(self, uri: str) -> bool:
        """Return True if no item of an asset, nor of any above, is stale: then nothing that reads it is outdated."""
        waiting, entered = [uri], {uri}
        while waiting:
            current = waiting.pop()
            maker = self._book.graph.maker(current)
            if current in self._current or maker is None:
                continue
            if self._has_stale(maker, current):
                return False
            new = maker.outputs[current] - entered
            entered |= new
            waiting += new
        self._current |= entered
        return True

    def _has_stale(self, maker: FlowNode, uri: str) -> bool:
        if self._has_keys(maker, uri) and self._states(maker, uri)["stale"]:
            return True
        whole = Item(uri)
        return self._book.updates.newest(whole) is not None and not self._is_fresh(whole)


def status_of(book: Book, item: Item) -> ItemStatus:
    """Return the status of an item."""
    return Statuses(book).of(item)


def counts_of(book: Book, uri: str) -> Counts | None:
    """Return how many items of an asset with keys are in which state; `None` for any other asset."""
    return Statuses(book).counts(uri)


def _state(causes: tuple[Cause, ...]) -> ItemState:
    if not causes:
        return "fresh"
    return "missing" if causes[0].kind == "missing" else "stale"
