"""The status of an item: missing, stale with its causes, or fresh; and whether anything above is not (contract 8.9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from assetflow.core.freshness.causes import Cause
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import items_changed, items_read
from assetflow.core.freshness.records import Item, Update
from assetflow.core.freshness.state.book import Book

ItemState = Literal["missing", "stale", "fresh", "source", "unknown"]


@dataclass(frozen=True)
class Base:
    """The update that an output is compared with (8.5), and what it is made from.

    Attributes:
        reads: each input that it was made from, with the place in the ledger up to which that was read.
    """

    update: Update
    reads: Mapping[str, int]


@dataclass(frozen=True)
class Status:
    """The status of an item."""

    state: ItemState
    causes: tuple[Cause, ...] = ()
    outdated: bool = False


@dataclass(frozen=True)
class Counts:
    """How many items of an asset with keys are in which state, and whether one of them is outdated."""

    states: Mapping[ItemState, int]
    outdated: bool


def base_of(book: Book, node: FlowNode, item: Item) -> Base | None:
    """Return the update that an output of a flow is compared with; `None` if nothing has updated the output."""
    depends = node.outputs[item.uri]
    for update in book.updates.history(item):
        if update.pins is None:
            return Base(update, dict.fromkeys(depends, update.sequence))
        if update.consumer == node.id or depends <= update.pins.keys():
            return Base(update, update.pins)
    return None


def causes_of(book: Book, node: FlowNode, item: Item) -> Iterator[Cause]:
    """Yield why an output of a flow is out of date; nothing if it is fresh. Contract 8.9.

    Parameters:
        item: the output, with the target key of the run that makes it.
    """
    if book.updates.newest(item) is None:
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
    for item in items_changed(book, node, _target_key(node, key), uri, after):
        read, newest = book.updates.as_of(item, after), book.updates.newest(item)
        if newest is not None and (read is None or read.data_version != newest.data_version):
            yield item


def status_of(book: Book, item: Item) -> Status:
    """Return the status of an item."""
    return _Statuses(book).of(item)


def counts_of(book: Book, uri: str) -> Counts | None:
    """Return how many items of an asset with keys are in which state; None for a source or an asset without keys."""
    maker = book.graph.maker(uri)
    if maker is None:
        return None
    keys = [*book.updates.keys(uri)]
    if maker.is_partitioned:
        keys = [*dict.fromkeys([*keys, *book.readings.targets(maker.id)])]
    elif not keys:
        return None
    statuses = _Statuses(book)
    found = [statuses.of(Item(uri, key)) for key in keys]
    return Counts(Counter(status.state for status in found), any(status.outdated for status in found))


class _Statuses:
    """The statuses of items, each worked out once."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._causes: dict[Item, tuple[Cause, ...]] = {}
        self._outdated: dict[Item, bool] = {}

    def of(self, item: Item) -> Status:
        if self._book.graph.maker(item.uri) is None:
            is_there = self._book.updates.has_items(item.uri)
            return Status("source" if is_there else "unknown")
        causes = self._causes_of(item)
        state: ItemState = "fresh" if not causes else "missing" if causes[0].kind == "missing" else "stale"
        return Status(state, causes, self._is_outdated(item))

    def _causes_of(self, item: Item) -> tuple[Cause, ...]:
        if item not in self._causes:
            maker = self._book.graph.maker(item.uri)
            self._causes[item] = () if maker is None else tuple(causes_of(self._book, maker, item))
        return self._causes[item]

    def _is_outdated(self, item: Item) -> bool:
        """Return True if an item or one above is not fresh; with a stack of its own, because graphs may be deep."""
        waiting, seen = [item], {item}
        while waiting:
            current = waiting.pop()
            if self._causes_of(current):
                return True
            for above in self._above(current):
                if above not in seen:
                    seen.add(above)
                    waiting.append(above)
        return False

    def _above(self, item: Item) -> Iterator[Item]:
        maker = self._book.graph.maker(item.uri)
        if maker is None:
            return
        for uri in sorted(maker.outputs[item.uri]):
            if self._book.graph.maker(uri) is not None:
                yield from items_read(self._book, maker, _target_key(maker, item.key), uri)


def _target_key(node: FlowNode, key: str | None) -> str | None:
    return key if node.is_partitioned else None


def _has_other_code(update: Update, code_version: str) -> bool:
    return not update.is_from_outside and update.code_version != code_version
