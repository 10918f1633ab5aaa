"""Count the items of an asset by state, without looking at each where a pass has looked already (contract 8.9).

Whatever changes an item of a key, or the flow, leads to a pass that judges the targets of that key. So an Eager target
is up to date if nothing was said of it and it is not on the agenda. Only items that belong to every target lead to no
judgement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import get_args

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import items_read
from assetflow.core.freshness.records import Item, ItemState, ItemUpdate, Target
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.status import base_of
from assetflow.core.freshness.verdicts import VerdictName

# What is said of a target while a run of it goes on does not tell whether it is up to date.
_OPEN: frozenset[VerdictName] = frozenset({"in_progress", "run"})
_OPEN_OR_SHARED: frozenset[VerdictName] = frozenset({*_OPEN, "ignored"})
_ALL: frozenset[VerdictName] = frozenset(get_args(VerdictName))


def count_states(book: Book, node: FlowNode, uri: str, state_of: Callable[[Item], ItemState]) -> Counter[ItemState]:
    """Return how many items of an output with keys are missing, stale and fresh.

    Parameters:
        node: its maker.
        state_of: returns the state of one item.
    """
    if not (node.is_partitioned and node.is_eager):
        items = [Item(uri, key) for key in _keys(book, node, uri)]
        book.updates.load(items)
        return Counter[ItemState](map(state_of, items))
    shared = list(_shared(book, node, uri))
    unsure = _ALL if len(node.outputs) > 1 else _OPEN_OR_SHARED if shared else _OPEN
    touched = {each: book.targets.find(each).verdict for each in _touched(book, node)}
    looked = Counter(state_of(Item(uri, each.key)) for each in {*_said(book, node, unsure), *touched})
    said = Counter(book.targets.verdicts(node.id, book.readings.has)) - Counter(touched.values())
    out_of_date = sum(number for name, number in said.items() if name not in unsure)
    made = book.updates.count_keys(uri)
    missing = book.readings.count(node.id) - made
    stale = out_of_date - (missing - looked["missing"]) + looked["stale"]
    stale += _behind(book, node, uri, shared) if shared else 0
    counted: dict[ItemState, int] = {"missing": missing, "stale": stale, "fresh": made - stale}
    return +Counter(counted)


def _keys(book: Book, node: FlowNode, uri: str) -> Collection[str]:
    targets = book.readings.targets(node.id) if node.is_partitioned else ()
    return dict.fromkeys([*book.updates.keys(uri), *targets])


def _said(book: Book, node: FlowNode, names: Collection[VerdictName]) -> Iterator[Target]:
    found = (target for name in sorted(names) for target in book.targets.with_verdict(name, node.id))
    return filter(book.readings.has, found)


def _touched(book: Book, node: FlowNode) -> Iterator[Target]:
    return (each for each in book.agenda.targets if each.consumer == node.id and book.readings.has(each))


def _shared(book: Book, node: FlowNode, uri: str) -> Iterator[ItemUpdate]:
    """Yield the newest updates of the items that every target reads."""
    for each in sorted(node.outputs[uri]):
        for item in items_read(book, node, None, each):
            newest = book.updates.newest(item)
            if newest is not None:
                yield newest


def _behind(book: Book, node: FlowNode, uri: str, shared: list[ItemUpdate]) -> int:
    """Return how many items are stale only because of items that every target reads."""
    looked_at = {*_said(book, node, _ALL), *_touched(book, node)}
    items = [Item(uri, key) for key in book.updates.keys(uri) if Target(node.id, key) not in looked_at]
    book.updates.load(items)
    newest_first = sorted(shared, key=lambda update: -update.sequence)
    return sum(_is_behind(book, node, item, newest_first) for item in items)


def _is_behind(book: Book, node: FlowNode, item: Item, newest_first: list[ItemUpdate]) -> bool:
    base = base_of(book, node, item)
    for update in newest_first if base is not None else ():
        assert base is not None
        after = base.reads.get(update.item.uri)
        if after is not None and update.sequence > after:
            read = book.updates.as_of(update.item, after)
            if read is None or read.data_version != update.data_version:
                return True
    return False
