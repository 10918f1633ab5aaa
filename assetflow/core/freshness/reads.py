"""What a target reads, what it misses, and to which targets an item belongs: the one place for rule 8.3."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.records import Item, Target
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.state.updates import greatest_keys
from assetflow.core.partitions import (
    EveryTargetMapper,
    KeysMapper,
    LastMapper,
    PartitionMapper,
    RollupMapper,
    StaticMapper,
    TimeWindowMapper,
)
from assetflow.errors import MappingError


def items_read(book: Book, node: FlowNode, key: str | None, uri: str) -> Iterator[Item]:
    """Yield the items of an input that a target reads, the one without a key first.

    Parameters:
        key: the target key; `None` for the target of a plain flow.
    """
    yield from _items_of(book, node, node.mappers.get(uri), key, uri)


def items_then(
    book: Book, node: FlowNode, mapper: PartitionMapper | None, key: str | None, uri: str, place: int
) -> Iterator[Item]:
    """Yield the items that a target read when its flow read an input by a mapper, and those that came after.

    Parameters:
        mapper: the mapper of then; `None` if the input was read whole.
        place: up to where in the ledger the input was read.
    """
    if isinstance(mapper, LastMapper):
        found = greatest_keys(book.updates, uri, mapper.n, lambda item: book.updates.as_of(item, place) is not None)
        yield from (Item(uri, each) for each in found)
    else:
        yield from _items_of(book, node, mapper, key, uri)


def items_changed(book: Book, node: FlowNode, key: str | None, uri: str, after: int) -> Iterator[Item]:
    """Yield the items of an input that a target reads and that were updated after a place in the ledger."""
    mapper = node.mappers.get(uri)
    if mapper is None and not node.is_partitioned:
        yield from book.updates.changed(uri, after)
        return
    for item in items_read(book, node, key, uri):
        newest = book.updates.newest(item)
        if newest is not None and newest.sequence > after:
            yield item


def missing_items(book: Book, node: FlowNode, key: str | None, uri: str) -> list[Item]:
    """Return what a target misses of an input: awaited keys, or the asset as a whole. Contract 8.3.

    Parameters:
        key: the target key; `None` for the target of a plain flow.
    """
    mapper = node.mappers.get(uri)
    if isinstance(mapper, RollupMapper):
        return [] if key is None else _missing_of_rollup(book, mapper, Target(node.id, key), uri)
    awaited = _awaited(mapper, key)
    if awaited is None:
        return [] if next(items_read(book, node, key, uri), None) is not None else [Item(uri)]
    missing = [item for each in awaited if book.updates.newest(item := Item(uri, each)) is None]
    # An item without a key stands for all, as long as nothing is known by key.
    is_whole = len(missing) == len(awaited) and book.updates.newest(Item(uri)) is not None
    return [] if is_whole else missing


def target_keys(node: FlowNode, uri: str, key: str | None) -> Collection[str | None] | None:
    """Return the target keys to which a key of an input belongs; `None` if it belongs to every target.

    Raises:
        MappingError: the mapper cannot read the key (5.4).
    """
    if not node.is_partitioned:
        return (None,)
    mapper = node.mappers.get(uri)
    if key is None or mapper is None or isinstance(mapper, EveryTargetMapper):
        return None
    return mapper.to_downstream(key)


def _mapped(mapper: PartitionMapper, key: str) -> Collection[str]:
    try:
        return mapper.to_downstream(key)
    except MappingError:
        return ()


def mapped_keys(node: FlowNode, uri: str, key: str | None) -> Collection[str | None] | None:
    """Return what `target_keys` returns, and no keys where the mapper fails."""
    try:
        return target_keys(node, uri, key)
    except MappingError:
        return ()


def reads_key(book: Book, node: FlowNode, target_key: str | None, uri: str, key: str | None) -> bool:
    """Return True if a target reads a key of an input, or would read it once it is there."""
    mapper = node.mappers.get(uri)
    if key is not None and isinstance(mapper, EveryTargetMapper):
        known = [*book.updates.greatest_keys(uri, mapper.n), key] if isinstance(mapper, LastMapper) else [key]
        return key in mapper.chosen(sorted(set(known)))
    belongs = mapped_keys(node, uri, key)
    return belongs is None or target_key in belongs


def _items_of(book: Book, node: FlowNode, mapper: PartitionMapper | None, key: str | None, uri: str) -> Iterator[Item]:
    whole = Item(uri)
    if not isinstance(mapper, LastMapper) and book.updates.newest(whole) is not None:
        yield whole
    for each in _keys_read(book, node, mapper, key, uri):
        yield Item(uri, each)


def _keys_read(
    book: Book, node: FlowNode, mapper: PartitionMapper | None, key: str | None, uri: str
) -> Collection[str]:
    if isinstance(mapper, LastMapper):
        return book.updates.greatest_keys(uri, mapper.n)
    if isinstance(mapper, KeysMapper):
        return [each for each in mapper.keys if book.updates.newest(Item(uri, each)) is not None]
    if isinstance(mapper, EveryTargetMapper) or mapper is None:
        return book.updates.keys(uri)
    if key is None:
        return ()
    if mapper == node.mappers.get(uri):
        return book.readings.keys(Target(node.id, key), uri)
    return [each for each in book.updates.keys(uri) if key in _mapped(mapper, each)]


def _missing_of_rollup(book: Book, mapper: RollupMapper, target: Target, uri: str) -> list[Item]:
    """Return the awaited keys that are not there, if those that are do not meet the wait policy."""
    there = book.readings.keys(target, uri)
    if target.key is None or mapper.is_met(target.key, there):
        return []
    try:
        awaited = mapper.awaited(target.key)
    except MappingError:
        return [Item(uri)]
    return [Item(uri, key) for key in sorted(awaited.difference(there))]


def _awaited(mapper: PartitionMapper | None, key: str | None) -> Collection[str] | None:
    """Return the keys that a target waits for; `None` if any item is enough."""
    if isinstance(mapper, KeysMapper):
        return mapper.keys
    if key is None or not isinstance(mapper, TimeWindowMapper | StaticMapper):
        return None
    try:
        return mapper.awaited(key)
    except MappingError:
        return ()
