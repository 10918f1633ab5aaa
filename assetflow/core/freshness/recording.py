"""Record versions: the data version of an update, confirmations, observations (contract 8.2)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import items_then, newest_made, touch_item
from assetflow.core.freshness.records import Item, ItemUpdate, Reads, Run
from assetflow.core.freshness.running import correct_tried
from assetflow.core.freshness.state.book import Book
from assetflow.core.values.events import AssetEvent


@dataclass(frozen=True)
class Made:
    """How an update was made, as its flow run tells.

    Attributes:
        consumer: the flow that made it; `None` if it is not known.
        pins: each input with the place in the ledger up to which it was read; `None` if nobody knows.
        started: when the run began, UTC.
        run: the run, if what it tries is remembered.
        mappers: the mappers by which it was read; `None` if nobody knows.
    """

    consumer: int | None
    pins: Mapping[str, int] | None
    code_version: str | None
    started: datetime
    run: Run | None = None
    mappers: Reads | None = None

    def on(self, update: ItemUpdate) -> ItemUpdate:
        """Return an update or a confirmation with what is known of how it was made."""
        return replace(
            update,
            consumer=self.consumer,
            pins=self.pins,
            code_version=self.code_version,
            started=self.started,
            mappers=self.mappers,
        )


def made_of(book: Book, event: AssetEvent) -> Made | None:
    """Return how an event was made; `None` for an update from outside.

    What its task did not pin was read when the run was asked for, or at a time that nobody knows.
    """
    flow_run = event.origin.flow_run
    if flow_run is None or flow_run.deployment_id is None:
        return None
    node = book.graph.of_deployment(flow_run.deployment_id)
    if node is None:
        return None
    depends = node.outputs.get(event.uri, frozenset())
    told = {uri: pin for uri, pin in event.inputs.items() if uri in depends}
    run = book.runs.of_flow_run(node.id, flow_run.id)
    if run is None:
        started = event.started or event.occurred
        return Made(node.id, told or None, event.code_version, started, mappers=node.mappers)
    pins = {**run.pins.get(event.uri, {}), **told}
    return Made(node.id, pins, event.code_version, event.started or run.began, run, run.tried.reads)


def with_data_version(book: Book, event: AssetEvent, made: Made | None) -> AssetEvent:
    """Return an event with its data version: the given one, a hash of what it was made from, or a unique one."""
    if event.data_version is not None:
        return event
    version = None
    if made is not None and made.consumer is not None and made.code_version is not None:
        version = _hash(book, book.graph.find(made.consumer), event, made)
    return replace(event, data_version=version or str(event.id))


def record_update(book: Book, event: AssetEvent, made: Made | None) -> None:
    """Remember an event that was appended to the ledger, and put what it concerns on the agenda."""
    assert event.sequence is not None
    assert event.recorded is not None
    item = Item(event.uri, event.partition_key)
    update = ItemUpdate(item, event.sequence, event.id, event.data_version or str(event.id), event.recorded)
    if made is not None:
        update = made.on(update)
        _correct_run(book, item, made)
    elif event.inputs:
        update = replace(update, pins=event.inputs, code_version=event.code_version)
    touch_item(book, item, is_new=book.updates.add(update))
    book.agenda.instants[event.recorded] = None


def confirm(book: Book, item: Item, confirmation: UUID, made: Made, now: datetime) -> None:
    """Confirm that an output is up to date, made from what its task read; what was never made stays missing.

    A confirmation that is delivered after a later update says nothing of it.
    """
    _correct_run(book, item, made)
    node = None if made.consumer is None else book.graph.find(made.consumer)
    newest = book.updates.newest(item) if node is None else newest_made(book, node, item)
    if newest is not None and newest.recorded <= now and newest.event != confirmation:
        again = replace(newest, sequence=book.place(), event=confirmation, recorded=now, confirms=True)
        book.updates.add(made.on(again))
        touch_item(book, newest.item, is_new=False)


def see(book: Book, item: Item, version: str | None, observation: UUID, at: datetime) -> None:
    """Remember that an observation saw the newest version of an item. It may be heard of late, or once more.

    Parameters:
        observation: the id of its event.
    """
    newest = book.updates.newest(item)
    if newest is None or newest.data_version != version or (at < newest.recorded and newest.event != observation):
        return
    seen = book.updates.seen(newest)
    if seen is None or seen < at:
        book.updates.see(newest, at)
        book.agenda.assets[item.uri] = None


def _correct_run(book: Book, output: Item, made: Made) -> None:
    if made.run is not None:
        correct_tried(book, made.run, output.uri, made.pins or {}, made.code_version)


def _hash(book: Book, node: FlowNode | None, event: AssetEvent, made: Made) -> str | None:
    """Return a hash of the code version and the versions that were read; `None` if nothing was."""
    if node is None:
        return None
    read: list[tuple[str, str, str]] = []
    for uri, pin in (made.pins or {}).items():
        for item in items_then(book, node, (made.mappers or {}).get(uri), event.partition_key, uri, pin):
            update = book.updates.as_of(item, pin)
            if update is not None:
                read.append((item.uri, item.key or "", update.data_version))
    if not read:
        return None
    text = "\0".join([made.code_version or "", *(part for row in sorted(read) for part in row)])
    return hashlib.sha256(text.encode()).hexdigest()
