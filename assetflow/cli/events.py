"""`assetflow events ls|show` and `assetflow queue ls|rm|replay`: updates, those that were recorded and those that wait.

Contract 3.7 and 4.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import cyclopts
from rich.text import Text

from assetflow.cli.layouts import events_table, show_explanation
from assetflow.cli.output import (
    answer,
    empty_message,
    id_cell,
    lists,
    reads,
    tell,
    text,
    time_cell,
)
from assetflow.cli.values import AsJson, AtLeastOne, DecisionName, EventName, Time, Wide, since_option, this_user
from assetflow.core.explain import shown_event, source_of
from assetflow.core.values.words import count
from assetflow.errors import InvalidCall, places
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.explanations import event_explanation
from assetflow.ledger.read.queues import QueuedEvent
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter, RefusedRecord
from assetflow.operations import decisions
from assetflow.operations.decisions import remove_queued
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_decision, find_event, find_uri, number_of, select

app = cyclopts.App(name="events", help="Events: updates of assets, and what each consumer did with them.")


@app.command
@lists
@reads
def ls(
    reader: Reader,
    /,
    *,
    asset: str | None = None,
    key: str | None = None,
    consumer: str | None = None,
    since: str | None = None,
    limit: AtLeastOne = 50,
    refused: bool = False,
    wide: Wide = False,
    json: AsJson = False,
) -> None:
    """List events, newest first.

    Parameters
    ----------
    asset
        List only updates of this asset: its URI or its name.
    key
        List only updates of this partition.
    consumer
        List only events that this consumer had to deal with: flow/deployment, its id, or a flow with one consumer.
    since
        List only updates that occurred since this time, or since so long ago: 2026-11-20T08:00:00Z, 90m, 2h, 3d.
    limit
        The largest number of events to list.
    refused
        List the events that were refused instead, with the reasons.
    """
    if refused:
        listed = reader.events.refused(limit=limit)
        _refused(listed, wide=wide, json=json, empty=empty_message(reader, "Nothing was refused."))
        return
    query = EventFilter(
        uri=None if asset is None else find_uri(reader, asset),
        partition_key=key,
        consumer=number_of(reader, consumer),
        since=since_option(since),
    )
    found = reader.events.find(query, newest_first=True, limit=limit)
    none = "No events yet: run a flow whose task has outlets." if query == EventFilter() else "No such events."
    empty = empty_message(reader, none)
    tell([shown_event(event) for event in found], events_table(found, empty=empty, wide=wide), json=json, wide=wide)


@app.command(name="show")
@reads
def show_event(reader: Reader, event: EventName, /, *, json: AsJson = False) -> None:
    """Show an event: where it came from, and what each consumer did with it.

    Parameters
    ----------
    event
        The event's id or its first eight characters, or its number; `assetflow events ls` shows both.
    """
    explanation = event_explanation(reader, find_event(reader, event))
    show_explanation(explanation, json=json)


def _refused(found: list[RefusedRecord], *, wide: bool, json: bool, empty: str) -> None:
    cells = (
        [time_cell(each.at), *map(text, (each.reason, each.rule or "", each.source)), id_cell(each.id, wide=wide)]
        for each in found
    )
    answer(
        found,
        ("at", "reason", "rule", "source", "id"),
        cells,
        whole=("id",),
        json=json,
        empty=empty,
        spare=("source", "rule", "id"),
        wide=wide,
    )


_OPTIONS = {"consumer": "consumer, --asset or --event", "key": "--key", "why": "--why"}

queue_app = cyclopts.App(name="queue", help="Queues: updates that consumers have not consumed yet.")


@queue_app.command(name="ls")
@lists
@reads
def list_queue(
    reader: Reader,
    consumer: str | None = None,
    /,
    *,
    asset: str | None = None,
    event: EventName | None = None,
    wide: Wide = False,
    json: AsJson = False,
) -> None:
    """List the queues with their sizes or, if a consumer, an asset or an event is given, the queued events.

    Parameters
    ----------
    consumer
        List the queue of this consumer: flow/deployment, its id, or a flow with one consumer.
    asset
        List only updates of this asset: its URI or its name.
    event
        List only this event: its id, or its number.
    """
    if consumer is None and asset is None and event is None:
        _list_queues(reader, json)
    else:
        which = select(reader, consumer, asset, event)
        found = reader.queues.find(which.number, uri=which.uri, event_id=which.event_id)
        _list_events(found, wide=wide, json=json, empty=empty_message(reader, "Nothing is queued."))


@queue_app.command
def rm(
    consumer: str | None = None,
    /,
    *,
    why: str,
    asset: str | None = None,
    event: EventName | None = None,
    before: Time | None = None,
    key: str | None = None,
    by: str | None = None,
    json: AsJson = False,
) -> None:
    """Remove queued events. Each event gets a receipt that says who removed it and why.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer. Without it, --asset or --event is needed, and the events
        are removed from every queue, except from pending partitions: those need a consumer and a key.
    why
        The reason, which the receipts then show.
    asset
        Remove only updates of this asset: its URI or its name.
    event
        Remove only this event: its id, or its number.
    before
        Remove only updates that were recorded before this time; UTC if it has no zone.
    key
        The pending partition to remove from: required for a partitioned consumer, and refused for any other.
    by
        Who removes them; by default the user of this process.
    """
    with Ledger.open() as ledger, places(**_OPTIONS):
        which = select(ledger.reader, consumer, asset, event)
        removed = remove_queued(
            Installation(ledger),
            which,
            target_key=key,
            before=before,
            by=this_user() if by is None else by,
            why=why,
        )
    record = which.consumer
    name = None if record is None else record.consumer.name
    where = "all queues" if name is None else f"the queue of {name}"
    words = text(f"{count(removed, 'event')} removed from {where}")
    tell({"consumer": name, "target_key": key, "removed": removed}, words, json=json)


@queue_app.command
def replay(
    decision: DecisionName | None = None,
    /,
    *,
    consumer: str | None = None,
    asset: str | None = None,
    event: EventName | None = None,
    json: AsJson = False,
) -> None:
    """Make undeliverable decisions wait for their runs again, which the evaluator then starts.

    Parameters
    ----------
    decision
        One decision, by its number or its id; `assetflow decisions ls --undeliverable` shows them.
    consumer
        All decisions of this consumer: flow/deployment, its id, or a flow with one consumer.
    asset
        All decisions that consumed updates of this asset: its URI or its name.
    event
        All decisions that consumed this event: its id, or its number.
    """
    with Ledger.open() as ledger:
        found = _undeliverable(ledger.reader, decision, consumer, asset, event)
        decisions.replay(Installation(ledger), found)
    outcome = "\n".join(f"decision {each} waits for its run again" for each in found)
    document = [{"id": str(each), "status": "waiting"} for each in found]
    tell(document, text(outcome or "No such decision is undeliverable."), json=json)


def _undeliverable(
    reader: Reader,
    decision: DecisionName | None,
    consumer: str | None,
    asset: str | None,
    event: EventName | None,
) -> list[UUID]:
    words = (consumer, asset, event)
    if (decision is None) == all(word is None for word in words):
        raise InvalidCall(
            "no decision is named" if decision is None else "a decision id and a selection cannot be given together",
            rule="4.6",
            fix="Name a decision id, or select some with --consumer, --asset or --event",
        )
    if decision is not None:
        return [find_decision(reader, decision).id]
    which = select(reader, *words)
    return reader.decisions.undeliverable(consumer=which.number, uri=which.uri, event_id=which.event_id)


def _list_queues(reader: Reader, json: bool) -> None:
    sizes = reader.queues.sizes()
    found = [(record.consumer, sizes.get(record.consumer.id, 0)) for record in reader.consumers.all()]
    document = [{"id": consumer.id, "name": consumer.name, "queued": size} for consumer, size in found]
    cells = ([text(consumer.name), Text(str(size)), text(consumer.options.describe())] for consumer, size in found)
    empty = empty_message(reader, "No consumers yet: deploy a flow that is scheduled on assets.")
    answer(document, ("consumer", "queued", "runs on"), cells, right=("queued",), json=json, empty=empty)


def _list_events(found: Sequence[QueuedEvent], *, wide: bool, json: bool, empty: str) -> None:
    consumers = ("consumer",) if len({each.consumer for each in found}) > 1 else ()
    keys = ("key", "event's key") if any(each.target_key is not None for each in found) else ()
    cells = (_queued_cells(each, consumers, keys, wide) for each in found)
    document = list(map(_as_json, found))
    answer(
        document,
        ("#", *consumers, "asset", *keys, "occurred", "by", "id"),
        cells,
        right=("#",),
        whole=("id",),
        json=json,
        empty=empty,
        spare=("by", "id"),
        wide=wide,
    )


def _queued_cells(each: QueuedEvent, consumers: Sequence[str], keys: Sequence[str], wide: bool) -> list[Text]:
    event = each.event
    return [
        Text(str(event.sequence)),
        *([text(each.consumer_name)] if consumers else []),
        text(event.asset.name),
        *([text(each.target_key or ""), text(event.partition_key or "")] if keys else []),
        time_cell(event.occurred),
        text(source_of(event.origin)),
        id_cell(event.id, wide=wide),
    ]


def _as_json(each: QueuedEvent) -> dict[str, object]:
    event = each.event
    return {
        "consumer": each.consumer_name,
        "event_id": event.id,
        "sequence": event.sequence,
        "uri": event.uri,
        "target_key": each.target_key,
        "partition_key": event.partition_key,
        "occurred": event.occurred,
        "recorded": event.recorded,
    }
