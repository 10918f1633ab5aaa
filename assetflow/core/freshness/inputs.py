"""Which inputs a run tries, and whether they are the same as before (contract 8.4, 8.6)."""

from __future__ import annotations

from collections.abc import Iterator

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import items_changed, items_read, items_then
from assetflow.core.freshness.records import Inputs, Item
from assetflow.core.freshness.state.book import Book
from assetflow.core.partitions import PartitionMapper


def inputs_now(book: Book, node: FlowNode) -> Inputs:
    """Return the inputs that a run tries which begins now."""
    return Inputs(book.place(), node.code_versions, {uri: node.mappers.get(uri) for uri in node.inputs})


def is_same(book: Book, node: FlowNode, key: str | None, tried: Inputs) -> bool:
    """Return True if a target would try the same inputs again now.

    Parameters:
        key: the target key.
    """
    return _are_of_same_flow(book, node, key, tried, inputs_now(book, node)) and not any(
        True for _ in _changed(book, node, key, tried.sequence, None)
    )


def are_same(book: Book, node: FlowNode, key: str | None, before: Inputs, after: Inputs) -> bool:
    """Return True if two runs of a target tried the same inputs."""
    return _are_of_same_flow(book, node, key, before, after) and not any(
        True for _ in _changed(book, node, key, before.sequence, after.sequence)
    )


def is_changed(book: Book, node: FlowNode, key: str | None, uri: str, after: int, until: int) -> bool:
    """Return True if an input, as far as it starts runs of a target, changed between two places in the ledger."""
    return next(_changed_of(book, node, key, uri, after, until), None) is not None


def starts_runs(node: FlowNode, item: Item) -> bool:
    """Return True if a new version of an item of an input may start a run (8.4)."""
    if item.uri not in node.starts:
        return False
    return not node.is_partitioned or (item.key is not None and node.is_read_by_key(item.uri))


def newest_that_start(book: Book, node: FlowNode, key: str | None) -> Iterator[str]:
    """Yield the ids of the newest updates of what starts runs of a target; of an asset that is read whole, of all."""
    for uri in sorted(node.starts):
        if node.is_partitioned:
            items = (item for item in items_read(book, node, key, uri) if starts_runs(node, item))
            found = [book.updates.newest(item) for item in items]
        else:
            found = [book.updates.newest_of(uri)]
        yield from sorted(str(update.event) for update in found if update is not None)


def _are_of_same_flow(book: Book, node: FlowNode, key: str | None, before: Inputs, after: Inputs) -> bool:
    """Return True if a target had the same code and inputs, and by another mapper would have read the same items."""
    if (before.code_versions, before.reads.keys()) != (after.code_versions, after.reads.keys()):
        return False
    others = ((uri, mapper) for uri, mapper in before.reads.items() if mapper != after.reads[uri])
    return all(
        _then(book, node, mapper, key, uri, before.sequence)
        == _then(book, node, after.reads[uri], key, uri, before.sequence)
        for uri, mapper in others
    )


def _then(
    book: Book, node: FlowNode, mapper: PartitionMapper | None, key: str | None, uri: str, place: int
) -> set[Item]:
    items = items_then(book, node, mapper, key, uri, place)
    return {item for item in items if book.updates.as_of(item, place) is not None}


def _changed(book: Book, node: FlowNode, key: str | None, after: int, until: int | None) -> Iterator[Item]:
    """Yield the items that start runs and have another version than at an earlier place in the ledger.

    Parameters:
        until: the later place; `None` for the newest one.
    """
    for uri in sorted(node.starts):
        yield from _changed_of(book, node, key, uri, after, until)


def _changed_of(book: Book, node: FlowNode, key: str | None, uri: str, after: int, until: int | None) -> Iterator[Item]:
    for item in items_changed(book, node, key, uri, after):
        if starts_runs(node, item):
            before = book.updates.as_of(item, after)
            now = book.updates.newest(item) if until is None else book.updates.as_of(item, until)
            if (before and before.data_version) != (now and now.data_version):
                yield item
