"""Try again what was tried or waived, because a user asks for it (contract 8.7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.read_ahead import read_ahead
from assetflow.core.freshness.records import Target
from assetflow.core.freshness.running import forget_failure
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.touching import all_keys, touch_flow
from assetflow.core.values.consumers import Consumer
from assetflow.errors import InvalidCall


def check_retry(book: Book, consumer: Consumer, key: str | None) -> FlowNode:
    """Return the flow of which targets are to be tried again.

    Parameters:
        key: one target key; `None` for all targets.

    Raises:
        InvalidCall: the consumer tries nothing of itself, or has no such target. `where` is `consumer` or `key`.
    """
    node = book.graph.find(consumer.id)
    if node is None or node.keeping is None:
        raise InvalidCall(
            f"the schedule of {consumer.name} is not Eager, OnMissing or Lazy, so it waives and repeats nothing",
            where="consumer",
            rule="8.7",
            fix="Retry the run that failed in Prefect: `prefect flow-run retry`",
        )
    if key is not None and not node.is_partitioned:
        raise InvalidCall(f"{consumer.name} is not partitioned", where="key", rule="8.7", fix="Leave the key out")
    if key is not None and not book.readings.has(Target(node.id, key)):
        raise InvalidCall(
            f"{consumer.name} has no key {key!r}",
            where="key",
            rule="8.7",
            fix="`assetflow plan` lists its keys; without a key, all of them are tried again",
        )
    return node


def retry(book: Book, node: FlowNode, key: str | None, now: datetime) -> None:
    """Forget what was tried and waived, of one target or of all, and that a run failed for good (8.7)."""
    keys = all_keys(book, node) if key is None else [key]
    read_ahead(book, node, keys)
    for target in (Target(node.id, each) for each in keys):
        record = book.targets.find(target)
        book.targets.save(target, replace(record, tried=None, waived=None, failures=0, retry_at=None))
    forget_failure(book, node)
    if key is None:
        touch_flow(book, node, now)
    else:
        book.agenda.add(Target(node.id, key))
