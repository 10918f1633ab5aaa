"""Put on the agenda what an update, an end of a run or a deploy concerns, found by index and never by scanning."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import mapped_keys
from assetflow.core.freshness.records import Item, Target
from assetflow.core.freshness.state.book import Book
from assetflow.core.partitions import EveryTargetMapper


def touch_item(book: Book, item: Item, *, is_new: bool) -> None:
    """Put the targets that read or make an item on the agenda.

    Parameters:
        is_new: the item was never updated before, so that it may make targets.
    """
    book.agenda.assets[item.uri] = None
    for node in book.graph.readers(item.uri):
        book.agenda.flows[node.id] = None
        keys = mapped_keys(node, item.uri, item.key)
        if is_new and item.key is not None and node.is_partitioned and keys is not None:
            _index(book, node, item.uri, item.key)
        if node.keeping is None:
            continue
        if keys is None:
            _touch_missing(book, node)
        else:
            for key in keys:
                book.agenda.add(Target(node.id, key))
    for node in book.graph.makers(item.uri):
        target = Target(node.id, item.key if node.is_partitioned else None)
        if is_new and node.is_partitioned:
            book.readings.add_target(target)
        book.agenda.flows[node.id] = None
        if node.keeping is not None:
            book.agenda.add(target)


def touch_flow(book: Book, node: FlowNode, now: datetime) -> None:
    """Put all targets of a flow on the agenda; of very many, the greatest keys, and let the clock look at the rest."""
    book.agenda.flows[node.id] = None
    if node.keeping is None:
        return
    for key in _first_keys(book, node, now):
        book.agenda.add_owing(Target(node.id, key))


def _first_keys(book: Book, node: FlowNode, now: datetime) -> Sequence[str | None]:
    """Return the target keys of a flow to judge in this pass, and set the others aside."""
    if book.most_judged is None or not node.is_partitioned:
        return all_keys(book, node)
    keys = book.readings.greatest(node.id, book.most_judged)
    if len(keys) == book.most_judged:
        book.targets.set_aside(node.id, frozenset(keys), now)
    return keys


def all_keys(book: Book, node: FlowNode) -> list[str | None]:
    """Return the target keys of a flow, sorted; `None` for a plain one."""
    return [*book.readings.targets(node.id)] if node.is_partitioned else [None]


def index_flow(book: Book, node: FlowNode) -> None:
    """Fill the index of targets of a partitioned flow that is new or has other mappers."""
    book.readings.forget(node.id)
    if not node.is_partitioned:
        return
    for uri in node.inputs:
        if not isinstance(node.mappers.get(uri), EveryTargetMapper):
            for key in book.updates.keys(uri):
                _index(book, node, uri, key)
    for uri in node.outputs:
        for key in book.updates.keys(uri):
            book.readings.add_target(Target(node.id, key))


def _index(book: Book, node: FlowNode, uri: str, key: str) -> None:
    keys = [each for each in mapped_keys(node, uri, key) or () if each is not None]
    book.readings.add(node.id, uri, key, keys, makes_targets=uri not in node.outputs)


def _touch_missing(book: Book, node: FlowNode) -> None:
    """Put the targets on the agenda that miss an input: an item that belongs to every target may be that."""
    for target in book.targets.with_verdict("missing_input", node.id):
        book.agenda.add(target)
