"""Why an output is out of date: what it was made from, and what has changed since (contract 8.5, 8.9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assetflow.core.freshness.causes import Cause
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import items_changed
from assetflow.core.freshness.records import Item, ItemUpdate
from assetflow.core.freshness.state.book import Book


@dataclass(frozen=True)
class ComparedUpdate:
    """The update that an output is compared with (8.5), and what it is made from.

    Attributes:
        reads: each input that it was made from, with the place in the ledger up to which that was read.
    """

    update: ItemUpdate
    reads: Mapping[str, int]


def base_of(book: Book, node: FlowNode, item: Item) -> ComparedUpdate | None:
    """Return the update that an output of a flow is compared with; `None` if nothing has updated the output."""
    depends = node.outputs[item.uri]
    is_whole = item.key is None and not node.is_partitioned
    for update in book.updates.of_asset(item.uri) if is_whole else book.updates.history(item):
        if update.pins is None:
            return ComparedUpdate(update, dict.fromkeys(depends, update.sequence))
        if update.consumer == node.id or depends <= update.pins.keys():
            return ComparedUpdate(update, update.pins)
    return None


def newest_made(book: Book, node: FlowNode, item: Item) -> ItemUpdate | None:
    """Return the newest update of an output of a target; a plain flow may give it keys. Contract 8.5.

    Parameters:
        item: the output, with the target key; one key of what a plain flow makes stands for itself.
    """
    is_whole = item.key is None and not node.is_partitioned
    return book.updates.newest_of(item.uri) if is_whole else book.updates.newest(item)


def causes_of(book: Book, node: FlowNode, item: Item) -> Iterator[Cause]:
    """Yield why an output of a flow is out of date; nothing if it is fresh. Contract 8.9.

    Parameters:
        item: the output, with the target key of the run that makes it.
    """
    if newest_made(book, node, item) is None:
        yield Cause("missing", item.uri)
        return
    depends = node.outputs[item.uri]
    base = base_of(book, node, item)
    code_version = node.code_versions[item.uri]
    if code_version is not None and (base is None or _has_other_code(base.update, code_version)):
        yield Cause("code")
    reads: Mapping[str, int] = {} if base is None else base.reads
    for uri in sorted(depends):
        if uri not in reads:
            yield Cause("dependency", uri)
        else:
            yield from (Cause("data", *each) for each in unread(book, node, item.key, uri, reads[uri]))
    if base is not None and base.update.consumer == node.id:
        yield from (Cause("dependency", uri) for uri in sorted(reads.keys() - depends))


def unread(book: Book, node: FlowNode, key: str | None, uri: str, after: int) -> Iterator[Item]:
    """Yield the items of an input whose version differs from the one that was read.

    Parameters:
        key: the target key.
        after: the place in the ledger up to which the input was read.
    """
    for item in items_changed(book, node, target_key_of(node, key), uri, after):
        read, newest = book.updates.as_of(item, after), book.updates.newest(item)
        if newest is not None and (read is None or read.data_version != newest.data_version):
            yield item


def target_key_of(node: FlowNode, key: str | None) -> str | None:
    """Return the target key of the run that makes a key of an output."""
    return key if node.is_partitioned else None


def _has_other_code(update: ItemUpdate, code_version: str) -> bool:
    return not update.is_from_outside and update.code_version != code_version
