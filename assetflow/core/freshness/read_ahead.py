"""Read at once what the judgement of many targets looks at, where each alone would be several queries."""

from __future__ import annotations

from collections.abc import Collection

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.records import Item, Target
from assetflow.core.freshness.state.book import Book

FEW = 8


def read_ahead(book: Book, node: FlowNode, keys: Collection[str | None]) -> None:
    """Read what is remembered of targets of a flow, and the newest updates of what they make and read by key.

    Parameters:
        keys: the target keys; for a few, nothing is read ahead.
    """
    if len(keys) <= FEW:
        return
    targets = [Target(node.id, key) for key in keys]
    book.targets.load(targets)
    for uri in node.outputs:
        book.updates.load(Item(uri, key) for key in keys)
    book.readings.load(node.id, targets)
    for uri in node.inputs:
        book.updates.load(Item(uri, each) for target in targets for each in book.readings.keys(target, uri))
