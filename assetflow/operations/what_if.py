"""What Eager and Lazy flows would run, and what an action would lead to: the fold, with nothing written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING
from uuid import uuid4

from assetflow.core.explain.what_if import WhatIf
from assetflow.core.graph.lineage import Node, flows_after
from assetflow.core.shapes import shape
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand
from assetflow.core.values.words import count

if TYPE_CHECKING:
    from assetflow.ledger.read.reader import Reader
    from assetflow.ledger.records import ConsumerRecord


# A backfill may be large, and its preview is asked for while the user types.
MOST_BACKFILLED = 200


@shape
class Preview(WhatIf):
    """The runs that an action would start, now and further down. Nothing is written."""

    further: tuple[str, ...] = ()
    """The flows further down, which those runs, and the runs after them, may start when they complete."""
    more: bool = False
    """There are more flows further down than these."""
    updates: tuple[str, ...] = ()
    """The assets that would be updated."""

    @property
    def further_words(self) -> str:
        """How many flows lie further down, as a sentence; "" for none."""
        number = len(self.further)
        verb = "lies" if number == 1 and not self.more else "lie"
        return f"{'More than ' if self.more else ''}{count(number, 'flow')} {verb} further down." if number else ""


def if_updated(reader: Reader, events: Sequence[AssetEvent], now: datetime) -> Preview:
    """Return what one recording of these updates would lead to."""
    what = reader.what_if.recorded([Recording(uuid4(), tuple(events))] if events else [], now)
    return _preview(reader, what, (event.uri for event in events))


def if_resumed(reader: Reader, record: ConsumerRecord, now: datetime) -> Preview:
    """Return what a resume of a consumer would lead to."""
    return _preview(reader, reader.what_if.resumed(record.consumer.id, now))


def if_all_resumed(reader: Reader, records: Sequence[ConsumerRecord], now: datetime) -> Preview:
    """Return what a resume of several consumers would lead to. What their runs would make is not part of it."""
    found = [reader.what_if.resumed(each.consumer.id, now) for each in records]
    starts = tuple(run for each in found for run in each.starts)
    return _preview(reader, WhatIf(starts, tuple(queue for each in found for queue in each.waits)))


def if_backfilled(reader: Reader, waves: Iterable[Mapping[str, Sequence[str | None]]], now: datetime) -> Preview:
    """Return what the completed runs of a backfill would lead to besides themselves, by its first 200 runs.

    Parameters:
        waves: the keys to run by flow, wave by wave.
    """
    runs = [(flow, key) for wave in waves for flow, keys in wave.items() for key in keys][:MOST_BACKFILLED]
    outlets = {flow: _outlets(reader, flow) for flow in dict.fromkeys(flow for flow, _ in runs)}
    recordings = [
        Recording(uuid4(), tuple(_event(uri, key, now) for uri in outlets[flow])) for flow, key in runs if outlets[flow]
    ]
    what = reader.what_if.recorded(recordings, now)
    besides = WhatIf(
        tuple(run for run in what.starts if run.consumer not in outlets),
        tuple(queue for queue in what.waits if queue.consumer not in outlets),
        what.refused,
    )
    return _preview(reader, besides, (uri for uris in outlets.values() for uri in uris), outlets.keys())


def if_run(reader: Reader, flow: str, keys: Sequence[str | None], now: datetime) -> Preview:
    """Return what completed runs of a flow would lead to, if each updates everything that the flow declares to make.

    Parameters:
        flow: `flow/deployment`.
        keys: one run for each of these partition keys.
    """
    uris = _outlets(reader, flow)
    recordings = [Recording(uuid4(), tuple(_event(uri, key, now) for uri in uris)) for key in keys if uris]
    return _preview(reader, reader.what_if.recorded(recordings, now), uris)


def _event(uri: str, key: str | None, now: datetime) -> AssetEvent:
    return event_by_hand(Asset(uri), id=uuid4(), occurred=now, origin=Origin("task"), partition_key=key)


def _outlets(reader: Reader, flow: str) -> list[str]:
    """Return the URIs that a flow declares to make."""
    edges = reader.lineage.edges_of([Node("flow", flow)])
    made = (edge.target for edge in edges if edge.kind == "produces" and edge.source.value == flow)
    return list(dict.fromkeys(node.value for node in made if node.kind == "asset"))


def _preview(
    reader: Reader, what: WhatIf, updates: Iterable[str] = (), running: Collection[str] = frozenset()
) -> Preview:
    """Return the preview with the flows further down.

    Parameters:
        running: flows that run themselves. What lies below them counts, and they do not.
    """
    direct = {each.consumer for each in (*what.starts, *what.waits)}
    above = {*direct, *running}
    further, more = flows_after(reader.lineage.edges_of, above) if above else ([], False)
    return Preview(**vars(what), further=tuple(further), more=more, updates=tuple(dict.fromkeys(updates)))


_REFUSED = ("dropped", "not_for_consumer", "not_mapped")
# The similarity, at most 1, from which one URI may be a typing error for another.
_ALIKE = 0.85


@dataclass(frozen=True)
class Effects:
    """The effects of an update.

    Attributes:
        queued: the consumers that have the update in their queues, each with True if it is paused.
        refused: for each consumer that refuses the update, a sentence with the reason.
        meant: a sentence on what the user probably meant, if no consumer wants the update; else an empty text.
    """

    queued: Mapping[str, bool] = field(default_factory=dict[str, bool])
    refused: Sequence[str] = ()
    meant: str = ""


def effects_of(reader: Reader, event: AssetEvent) -> Effects:
    """Return the effects of an update that is in the ledger."""
    # Who only sends an update to Prefect does not wait for SQLAlchemy.
    from assetflow.ledger.read.explanations import event_explanation

    receipts = event_explanation(reader, event.id).receipts
    consumers = [record.consumer for record in reader.consumers.all()]
    queued = {each.consumer for each in receipts if each.status == "queued"}
    return Effects(
        queued={each.name: each.paused for each in consumers if each.name in queued},
        refused=[each.words for each in receipts if each.status in _REFUSED],
        meant="" if receipts and receipts[0].consumer else meant(reader, event.uri),
    )


def meant(reader: Reader, uri: str) -> str:
    """Return a sentence with the asset that flows run on and that is called nearly so; an empty text for none."""
    tokens = {token for record in reader.consumers.all() for token in record.consumer.schedule.tokens}
    uris = [token.value for token in tokens if token.kind == "uri"]
    names = {*uris, *reader.assets.names(uris).values(), *(each.value for each in tokens if each.kind == "name")}
    near = get_close_matches(uri, sorted(names), n=1, cutoff=_ALIKE)
    return f"flows are scheduled on {near[0]}: emit that if you meant it" if near else ""
