"""The status of items and assets: missing, stale with its causes, or fresh; and whether anything above is not (8.9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar, get_args

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import base_of, causes_of, items_read, target_key_of
from assetflow.core.freshness.records import Item, ItemState, ItemUpdate, Target, VerdictName
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.values.keeping import Cause

# While a target runs, its verdict does not say whether it is up to date.
_OPEN: frozenset[VerdictName] = frozenset({"in_progress", "run"})
_OPEN_OR_SHARED: frozenset[VerdictName] = frozenset({*_OPEN, "ignored"})
_ALL: frozenset[VerdictName] = frozenset(get_args(VerdictName))


def count_states(
    freshness: FreshnessState, node: FlowNode, uri: str, state_of: Callable[[Item], ItemState]
) -> Counter[ItemState]:
    """Return how many items of an output with keys are missing, stale and fresh.

    Parameters:
        node: its maker.
        state_of: returns the state of one item.
    """
    if not (node.is_partitioned and node.is_eager):
        items = [Item(uri, key) for key in _keys(freshness, node, uri)]
        freshness.updates.load(items)
        return Counter[ItemState](map(state_of, items))
    shared = list(_shared(freshness, node, uri))
    unsure = _ALL if len(node.outputs) > 1 else _OPEN_OR_SHARED if shared else _OPEN
    touched = {each: freshness.targets.find(each).verdict for each in _touched(freshness, node)}
    looked = Counter(state_of(Item(uri, each.key)) for each in {*_said(freshness, node, unsure), *touched})
    said = Counter(freshness.targets.verdicts(node.id, freshness.readings.has)) - Counter(touched.values())
    out_of_date = sum(number for name, number in said.items() if name not in unsure)
    made = freshness.updates.count_keys(uri)
    missing = freshness.readings.count(node.id) - made
    stale = out_of_date - (missing - looked["missing"]) + looked["stale"]
    stale += _behind(freshness, node, uri, shared) if shared else 0
    counted: dict[ItemState, int] = {"missing": missing, "stale": stale, "fresh": made - stale}
    return +Counter(counted)


def _keys(freshness: FreshnessState, node: FlowNode, uri: str) -> Collection[str]:
    targets = freshness.readings.targets(node.id) if node.is_partitioned else ()
    return dict.fromkeys([*freshness.updates.keys(uri), *targets])


def _said(freshness: FreshnessState, node: FlowNode, names: Collection[VerdictName]) -> Iterator[Target]:
    found = (target for name in sorted(names) for target in freshness.targets.with_verdict(name, node.id))
    return filter(freshness.readings.has, found)


def _touched(freshness: FreshnessState, node: FlowNode) -> Iterator[Target]:
    return (each for each in freshness.agenda.targets if each.consumer == node.id and freshness.readings.has(each))


def _shared(freshness: FreshnessState, node: FlowNode, uri: str) -> Iterator[ItemUpdate]:
    """Yield the newest updates of the items that every target reads."""
    for each in sorted(node.outputs[uri]):
        for item in items_read(freshness, node, None, each):
            newest = freshness.updates.newest(item)
            if newest is not None:
                yield newest


def _behind(freshness: FreshnessState, node: FlowNode, uri: str, shared: list[ItemUpdate]) -> int:
    """Return how many items are stale only because of items that every target reads."""
    looked_at = {*_said(freshness, node, _ALL), *_touched(freshness, node)}
    items = [Item(uri, key) for key in freshness.updates.keys(uri) if Target(node.id, key) not in looked_at]
    freshness.updates.load(items)
    newest_first = sorted(shared, key=lambda update: -update.sequence)
    return sum(_is_behind(freshness, node, item, newest_first) for item in items)


def _is_behind(freshness: FreshnessState, node: FlowNode, item: Item, newest_first: list[ItemUpdate]) -> bool:
    base = base_of(freshness, node, item)
    read: Mapping[str, int] = {} if base is None else base.reads
    later = (each for each in newest_first if each.sequence > read.get(each.item.uri, each.sequence))
    return any(freshness.updates.is_unread(each, read[each.item.uri]) for each in later)


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

    def __init__(self, freshness: FreshnessState, most: int | None = None) -> None:
        self._freshness = freshness
        self._most = most
        self._fresh: dict[Item, bool] = {}
        self._counted: dict[str, Counter[ItemState]] = {}
        self._outdated: dict[Item, bool] = {}
        self._behind: dict[str, bool] = {}

    def of(self, item: Item) -> ItemStatus:
        """Return the status of an item."""
        maker = self._freshness.graph.maker(item.uri)
        if maker is None:
            newest = self._freshness.updates.newest_of(item.uri)
            return ItemStatus("unknown" if newest is None else "source")
        causes = tuple(islice(causes_of(self._freshness, maker, item), self._most))
        self._fresh[item] = not causes
        return ItemStatus(_state(causes), causes, self._is_outdated(item))

    def counts(self, uri: str) -> ItemCounts | None:
        """Return how many items of an asset with keys are in which state; `None` for any other asset."""
        maker = self._freshness.graph.maker(uri)
        if maker is None or not self._has_keys(maker, uri):
            return None
        states = self._states(maker, uri)
        return ItemCounts(states, states["fresh"] < states.total() or self._is_any_outdated(maker, uri))

    def _has_keys(self, maker: FlowNode, uri: str) -> bool:
        return maker.is_partitioned or self._freshness.updates.count_keys(uri) > 0

    def _states(self, maker: FlowNode, uri: str) -> Counter[ItemState]:
        if uri not in self._counted:
            self._counted[uri] = count_states(self._freshness, maker, uri, self._state)
        return self._counted[uri]

    def _state(self, item: Item) -> ItemState:
        if self._freshness.updates.newest(item) is None:
            return "missing"
        return "fresh" if self._is_fresh(item) else "stale"

    def _is_fresh(self, item: Item) -> bool:
        if item not in self._fresh:
            maker = self._freshness.graph.maker(item.uri)
            self._fresh[item] = maker is None or next(causes_of(self._freshness, maker, item), None) is None
        return self._fresh[item]

    def _is_any_outdated(self, maker: FlowNode, uri: str) -> bool:
        """Return True if an item of an asset is outdated of which every item is fresh."""
        if all(map(self._is_current, maker.outputs[uri])):
            return False
        return any(self._is_outdated(Item(uri, key)) for key in reversed(self._freshness.updates.keys(uri)))

    def _is_outdated(self, item: Item) -> bool:
        """Return True if an item or one above is not fresh."""
        return reaches(item, lambda each: not self._is_fresh(each), self._above, self._outdated)

    def _above(self, item: Item) -> Iterator[Item]:
        maker = self._freshness.graph.maker(item.uri)
        if maker is not None:
            for uri in sorted(maker.outputs[item.uri]):
                if not self._is_current(uri):
                    yield from items_read(self._freshness, maker, target_key_of(maker, item.key), uri)

    def _is_current(self, uri: str) -> bool:
        """Return True if no item of an asset, nor of any above, is stale: then nothing that reads it is outdated."""
        return not reaches(uri, self._has_stale, self._assets_above, self._behind)

    def _assets_above(self, uri: str) -> Iterable[str]:
        maker = self._freshness.graph.maker(uri)
        return () if maker is None else maker.outputs[uri]

    def _has_stale(self, uri: str) -> bool:
        maker = self._freshness.graph.maker(uri)
        if maker is None:
            return False
        if self._has_keys(maker, uri) and self._states(maker, uri)["stale"]:
            return True
        whole = Item(uri)
        return self._freshness.updates.newest(whole) is not None and not self._is_fresh(whole)


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


def _state(causes: tuple[Cause, ...]) -> ItemState:
    if not causes:
        return "fresh"
    return "missing" if causes[0].kind == "missing" else "stale"
