"""Refuse flows that can never work as they are meant (contract 8.1, 8.10, 8.11)."""

from __future__ import annotations

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.state.book import Book
from assetflow.core.values.consumers import Consumer
from assetflow.errors import InvalidSchedule


def check_flow(book: Book, consumer: Consumer) -> None:
    """Check a flow that is about to be deployed against those that are.

    Raises:
        InvalidSchedule: it makes nothing to keep up to date or what another Eager or Lazy flow makes, it would keep
            itself running, or a policy names inputs that the asset does not have.
    """
    if not book.admit(consumer):
        return
    node = book.graph.node_of(consumer)
    if node.keeping is not None:
        _check_outputs(book, node)
    way = book.graph.way_back(node)
    if way is not None:
        raise InvalidSchedule(
            f"these flows would keep each other running: {' → '.join(each.consumer.name for each in way)}",
            rule="8.10",
            fix="Take one of the inputs away; or read earlier periods of an own output, with a TimeWindowMapper",
        )
    _check_policies(book, node)


def _check_outputs(book: Book, node: FlowNode) -> None:
    if not node.outputs:
        raise InvalidSchedule(
            "the flow makes no asset that could be kept up to date",
            rule="8.1",
            fix="Give its tasks outlets, or write @flow(produces=[...])",
        )
    if node.is_lazy and node.is_partitioned:
        raise InvalidSchedule(
            "a Lazy flow has no partitions", rule="8.1", fix="Write Eager(...), and a freshness policy that alerts"
        )
    for uri in sorted(node.outputs):
        for other in book.graph.keepers(uri):
            if other.id != node.id:
                raise InvalidSchedule(
                    f"{uri} is made by the Eager or Lazy flow {other.consumer.name} already",
                    rule="8.1",
                    fix="Let one flow make it; a flow with another schedule may make it too",
                )


def _check_policies(book: Book, node: FlowNode) -> None:
    for uri, policy in node.policies.items():
        known = node.outputs.get(uri)
        if known is None:
            maker = book.graph.maker(uri)
            known = frozenset(node.inputs) if maker is None else maker.outputs[uri]
        for each in policy.inputs or ():
            if book.resolve(each.token) not in known:
                raise InvalidSchedule(
                    f"{each.describe()} is not an input of {uri}",
                    rule="8.11",
                    fix="Name inputs of the task that makes the asset",
                )
