"""Follow deploys, pauses and removals: the data graph, what is owed after them, and policies (8.1, 8.8, 8.11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from assetflow.core.consumers import Consumer
from assetflow.core.freshness.backfilling import take_off
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.inputs import inputs_now
from assetflow.core.freshness.judging import is_out_of_date
from assetflow.core.freshness.records import FlowRecord, Target
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.touching import all_keys, index_flow, touch_flow


def follow(
    book: Book, before: Consumer | None, consumer: Consumer, now: datetime, since: datetime | None = None
) -> None:
    """Follow a consumer that is new, has other options, or was paused or resumed.

    Parameters:
        before: the consumer as it was; None for a new one.
        since: in a rebuilt ledger, when its policies begin; None for now.
    """
    if not book.admit(consumer):
        return
    old = book.graph.find(consumer.id)
    was_out = _out_of_date(book, old) if old is not None and old.is_eager and before is not None else None
    compared = book.compared
    node = book.put(consumer)
    _index_flows(book, book.compared - compared)
    if node is not None and before is not None and before.options == consumer.options and old is not None:
        _follow_switch(book, old, node)
        return
    if node is None:
        if old is not None:
            _leave(book, old, now)
        return
    _remember(book, old, node, now)
    if old is None or old.mappers != node.mappers or old.is_partitioned != node.is_partitioned:
        index_flow(book, node)
    if old is not None and old.is_partitioned != node.is_partitioned:
        take_off(book, node.id, now)
    _declare_policies(book, [old, node], since or now)
    # A rebuilt ledger owes and waives nothing anew (8.17).
    if node.is_eager and since is None:
        _waive(book, node, was_out or set())
    touch_flow(book, node)
    _touch_neighbours(book, [old, node])


def _index_flows(book: Book, uris: Iterable[str]) -> None:
    """Fill the indexes of the flows that read or make assets which were not compared before, and may have keys."""
    nodes = [node for uri in sorted(uris) for node in (*book.graph.readers(uri), *book.graph.makers(uri))]
    for node in {node.id: node for node in nodes}.values():
        index_flow(book, node)


def leave(book: Book, number: int, now: datetime) -> None:
    """Forget a consumer that was removed: its outputs become sources (8.17)."""
    node = book.graph.find(number)
    if node is not None:
        book.remove(number)
        _leave(book, node, now)


def _leave(book: Book, node: FlowNode, now: datetime) -> None:
    book.save_flow(node.id, None)
    book.readings.forget(node.id)
    book.runs.forget(node.id)
    take_off(book, node.id, now)
    _declare_policies(book, [node], now)
    _touch_neighbours(book, [node])


def _follow_switch(book: Book, old: FlowNode, node: FlowNode) -> None:
    """Follow a pause or a resume: after a pause, `catchup` says what is owed (8.8)."""
    if old.consumer.paused and not node.consumer.paused and node.is_eager:
        _waive(book, node, set())
    touch_flow(book, node)


def _out_of_date(book: Book, node: FlowNode) -> set[str | None]:
    return {key for key in all_keys(book, node) if is_out_of_date(book, node, key)}


def _waive(book: Book, node: FlowNode, owed_before: set[str | None]) -> None:
    """Waive what is out of date and not owed.

    Parameters:
        owed_before: the targets that were out of date already: they stay owed.
    """
    assert node.keeping is not None
    out = [key for key in all_keys(book, node) if key not in owed_before and is_out_of_date(book, node, key)]
    owed = {"none": [], "latest": out[-1:], "all": out}[node.keeping.catchup]
    for key in out:
        target = Target(node.id, key)
        waived = None if key in owed else inputs_now(book, node)
        book.targets.save(target, replace(book.targets.find(target), waived=waived))


def _remember(book: Book, old: FlowNode | None, node: FlowNode, now: datetime) -> None:
    """Remember since when the flow is as it is."""
    known, moment = book.flow_record(node.id), book.moment(now)
    if known is None or old is None:
        record = FlowRecord(dict.fromkeys(node.outputs, moment), moment, moment)
    else:
        record = replace(
            known,
            outputs={uri: known.outputs.get(uri, moment) for uri in node.outputs},
            code=known.code if old.code_versions == node.code_versions else moment,
            reads=known.reads if (old.inputs, old.outputs) == (node.inputs, node.outputs) else moment,
        )
    book.save_flow(node.id, record)


def _declare_policies(book: Book, nodes: Iterable[FlowNode | None], since: datetime) -> None:
    """Let the policies begin and end that the declarations of some flows concern."""
    if not any(node is not None and (node.policies or book.graph.declares_any(node.outputs)) for node in nodes):
        return
    uris: dict[str, None] = {}
    for node in nodes:
        if node is not None:
            uris |= dict.fromkeys([*node.outputs, *node.policies])
    for uri in uris:
        book.policies.declare(uri, book.graph.policy(uri), since)
        book.agenda.assets[uri] = None


def _touch_neighbours(book: Book, nodes: Iterable[FlowNode | None]) -> None:
    """Put the flows on the agenda that read what some flows make: whom they wait for may have changed."""
    for node in nodes:
        for uri in node.outputs if node is not None else ():
            for reader in book.graph.readers(uri):
                book.agenda.flows[reader.id] = None
