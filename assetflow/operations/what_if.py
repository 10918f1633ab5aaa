"""What Eager and Lazy flows would run, and what an action would lead to: the fold, with nothing written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING
from uuid import uuid4

from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.explain.what_if import WhatIf
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.core.graph.lineage import Node, flows_after
from assetflow.core.shapes import shape
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.posted_events import event_by_hand
from assetflow.core.values.words import ago, count
from assetflow.core.values.words import at as told
from assetflow.errors import InvalidCall
from assetflow.ledger.read.assets import AssetFilter
from assetflow.ledger.read.consumers import ConsumerOverview
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import find_consumer

if TYPE_CHECKING:
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


def planned(
    reader: Reader, now: datetime, *, consumer: str | None = None, key: str | None = None, at: datetime | None = None
) -> list[PlannedConsumer]:
    """Return what Eager and Lazy consumers would run, by name, and what holds them back.

    Parameters:
        consumer: only this one: flow/deployment, its id, or a flow with one consumer.
        key: only this target key.
        at: as of this later time, UTC; now by default.

    Raises:
        UnknownConsumer: no consumer is called so.
        InvalidCall: the time is over, or no such consumer has the key.
    """
    if at is not None and at < now:
        raise InvalidCall(
            f"{told(at)} is over: a plan says what would run from now on",
            rule="8.16",
            fix="Name a later time, or none for now. `assetflow decisions ls` lists what did run",
        )
    number = None if consumer is None else find_consumer(reader, consumer).consumer.id
    found = reader.freshness.plan(at or now, number, key)
    if key is not None and not found:
        of = "no Eager consumer" if consumer is None else f"{consumer} is not an Eager consumer that"
        raise InvalidCall(
            f"{of} has key {key!r}",
            rule="8.3",
            fix="`assetflow assets status URI --key KEY` tells of the key of an asset",
        )
    return found


@dataclass(frozen=True)
class LateAsset:
    """An asset that is late, or will be.

    Attributes:
        name: its readable name.
        doing: what is being done about it, as a sentence.
    """

    freshness: AssetFreshness
    name: str
    doing: str


def late_now(policies: Sequence[AssetFreshness]) -> list[AssetFreshness]:
    """Return the assets that are older than their policy allows, then those that get a warning."""
    return sorted((each for each in policies if each.is_late), key=lambda each: each.record.state)


def late_soon(
    reader: Reader, policies: Sequence[AssetFreshness], now: datetime
) -> list[tuple[datetime, AssetFreshness]]:
    """Return the assets that will be late at their next deadline if nothing changes, the next deadline first.

    A Lazy flow makes its asset before, when it is due.
    """
    candidates = [(deadline, each) for each in policies if (deadline := each.late_at(now)) is not None]
    lazy = reader.consumers.lazy() if candidates else set[str]()
    found = [
        (deadline, each)
        for deadline, each in candidates
        if each.maker not in lazy or each.record.due is None or each.record.due >= deadline
    ]
    return sorted(found, key=lambda item: (item[0], item[1].uri))


def with_doing(reader: Reader, found: Sequence[AssetFreshness], now: datetime) -> list[LateAsset]:
    """Return some of these assets, each with its name and what is being done about it."""
    if not found:
        return []
    uris = [each.uri for each in found]
    listed, _ = reader.assets.page(AssetFilter(uris=uris), limit=len(uris))
    names = {each.record.uri: each.name for each in listed}
    doing = _doing(reader, {each.maker for each in found if each.maker is not None}, now)
    return [LateAsset(each, names.get(each.uri, each.uri), _of_asset(reader, each, doing, now)) for each in found]


def _of_asset(reader: Reader, each: AssetFreshness, doing: Mapping[str, str], now: datetime) -> str:
    """Return what is being done about an asset; if its flow has nothing to do, which source its data is from."""
    told = doing.get(each.maker or "")
    if told is None:
        return "No flow makes it"
    if told:
        return f"{each.maker}: {told}"
    nothing = f"{each.maker} has nothing to do"
    *_, last = [None, *reader.freshness.data_path(each.uri)[1:]]
    return nothing if last is None or last.moment is None else f"{nothing}: {last.name} is from {ago(last.moment, now)}"


def _doing(reader: Reader, makers: set[str], now: datetime) -> Mapping[str, str]:
    """Return what each of these flows does now, or what holds it back, by its name; "" if it has nothing to do."""
    records = [record for name in sorted(makers) if (record := reader.consumers.named(name)) is not None]
    kept = [each.consumer.id for each in records if each.consumer.schedule.keeping is not None]
    plans = {each.consumer: each for each in (reader.freshness.plans(now, kept) if kept else [])}
    told = {each.name: _of_flow(each, plans.get(each.name)) for each in reader.consumers.overviews(records)}
    return {name: f"{words[:1].lower()}{words[1:].rstrip('.')}" for name, words in told.items()}


def _of_flow(maker: ConsumerOverview, planned: PlannedConsumer | None) -> str:
    if planned is None:
        return _of_event_schedule(maker)
    return "" if planned.is_up_to_date else planned.words


def _of_event_schedule(maker: ConsumerOverview) -> str:
    last = maker.last
    if last is not None and last.ended is None:
        if last.status == "undeliverable":
            return "Its run could not be started"
        return "A run goes on" if last.status == "launched" else "A run is asked for"
    if maker.paused:
        return f"Held back, because it is {maker.paused.replace(', ', ' and ')}"
    if maker.record.consumer.schedule.tokens:
        return f"It waits: {maker.state}"
    return "It runs at its next time"
