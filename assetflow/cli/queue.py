"""`assetflow queue ls|rm|replay`: an operator's work on queues (contract 3.7, 4.6)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypedDict
from uuid import UUID

import cyclopts
from rich.text import Text

from assetflow.cli.naming import in_utc, this_user
from assetflow.cli.output import moment, print_json, rows, show, table, text
from assetflow.core.explanation import source_of
from assetflow.core.explanation.words import count, iso, some
from assetflow.errors import InvalidCall, UnknownEvent
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.lookup import find_consumer, find_uri
from assetflow.ledger.queued import QueuedEvent
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import ConsumerRecord

app = cyclopts.App(name="queue", help="Queues: updates that consumers have not consumed yet.")


@app.command
def ls(
    consumer: str | None = None, /, *, asset: str | None = None, event: UUID | None = None, json: bool = False
) -> None:
    """List what is queued: how much for each consumer, or each event of one consumer, of one asset, or for whom one
    event is queued.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer.
    asset
        Only updates of this asset: its URI or its name.
    event
        Only this event: its id.
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        if consumer is None and asset is None and event is None:
            _list_queues(reader, json)
        else:
            _list_events(reader.queued(**_meant(reader, consumer, asset, event)), json)


@app.command
def rm(
    consumer: str | None = None,
    /,
    *,
    why: str,
    asset: str | None = None,
    event: UUID | None = None,
    before: datetime | None = None,
    partition: str | None = None,
    by: str | None = None,
    json: bool = False,
) -> None:
    """Remove queued events. Each gets a receipt that says who removed it and why.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer. If it is not given, --asset or --event is needed, and
        the events are removed from every queue; pending partitions are removed only by naming consumer and key.
    why
        The reason, for whoever reads the receipts.
    asset
        Only updates of this asset: its URI or its name.
    event
        Only this event: its id.
    before
        Only updates that were recorded before this time; UTC if it has no zone.
    partition
        The pending partition; needed, and only possible, for a partitioned consumer.
    by
        Who removes them; the user of this process if not given.
    json
        Print one JSON document.
    """
    if not why.strip():
        raise InvalidCall("--why is blank", rule="3.7", fix="Say why the events are removed")
    with Ledger.open() as ledger:
        meant = _meant(ledger.reader, consumer, asset, event)
        record = _check_partition(ledger.reader, meant, partition)
        removed = ledger.writer.remove_queued(
            **meant,
            before=None if before is None else in_utc(before),
            target_key=partition,
            by=this_user() if by is None else by,
            why=why,
            now=datetime.now(UTC),
        )
    name = None if record is None else record.consumer.name
    if json:
        print_json({"consumer": name, "partition": partition, "removed": removed})
    else:
        where = "all queues" if name is None else f"the queue of {name}"
        show(text(f"{count(removed, 'event')} removed from {where}"))


@app.command
def replay(
    decision: UUID | None = None,
    /,
    *,
    consumer: str | None = None,
    asset: str | None = None,
    event: UUID | None = None,
    json: bool = False,
) -> None:
    """Let undeliverable decisions be launched again, by the evaluator: one, or all of a consumer, an asset, an event.

    Parameters
    ----------
    decision
        The decision's id; `assetflow decisions ls --undeliverable` lists them.
    consumer
        All decisions of this consumer: flow/deployment, its id, or a flow with one consumer.
    asset
        All decisions that consumed updates of this asset: its URI or its name.
    event
        All decisions that consumed this event: its id.
    json
        Print one JSON document.
    """
    with Ledger.open() as ledger:
        found = _undeliverable(ledger.reader, decision, consumer, asset, event)
        for each in found:
            ledger.writer.replay(each)
    if json:
        print_json([{"decision": str(each), "status": "waiting"} for each in found])
    else:
        told = [f"decision {each} waits for its run again" for each in found]
        show(text("\n".join(told) or "No such decision is undeliverable."))


class Meant(TypedDict):
    """What an operator's words mean: a consumer's id, an asset's URI, an event's id."""

    consumer: int | None
    uri: str | None
    event_id: UUID | None


def _meant(reader: Reader, consumer: str | None, asset: str | None, event: UUID | None) -> Meant:
    if event is not None and reader.event(event) is None:
        raise UnknownEvent(f"no event has the id {event}", fix="`assetflow events ls` lists the events")
    return {
        "consumer": None if consumer is None else find_consumer(reader, consumer).consumer.id,
        "uri": None if asset is None else find_uri(reader, asset),
        "event_id": event,
    }


def _undeliverable(
    reader: Reader, decision: UUID | None, consumer: str | None, asset: str | None, event: UUID | None
) -> list[UUID]:
    words = (consumer, asset, event)
    if (decision is None) == all(word is None for word in words):
        raise InvalidCall(
            "which decisions?",
            rule="4.6",
            fix="Give a decision's id, or some of --consumer, --asset and --event",
        )
    return [decision] if decision is not None else reader.undeliverable(**_meant(reader, *words))


def _list_queues(reader: Reader, json: bool) -> None:
    sizes = reader.queue_sizes()
    found = [(record.consumer, sizes.get(record.consumer.id, 0)) for record in reader.consumers()]
    if json:
        print_json([{"consumer": consumer.name, "id": consumer.id, "queued": size} for consumer, size in found])
        return
    made = table("consumer", "queued", "runs on", right=("queued",))
    cells = ([text(consumer.name), Text(str(size)), text(consumer.schedule.describe())] for consumer, size in found)
    show(rows(made, cells, empty="No consumers yet: deploy a flow that is scheduled on assets."))


def _list_events(found: Sequence[QueuedEvent], json: bool) -> None:
    if json:
        print_json([_as_json(each) for each in found])
        return
    now = datetime.now(UTC)
    consumers = ("consumer",) if len({each.consumer for each in found}) > 1 else ()
    keys = ("partition", "key") if any(each.target_key is not None for each in found) else ()
    made = table("#", *consumers, "asset", *keys, "occurred", "by", "id", right=("#",), whole=("id",))
    show(rows(made, (_cells(each, consumers, keys, now) for each in found), empty="Nothing is queued."))


def _cells(each: QueuedEvent, consumers: Sequence[str], keys: Sequence[str], now: datetime) -> list[Text]:
    event = each.event
    return [
        Text(str(event.sequence)),
        *([text(each.consumer_name)] if consumers else []),
        text(event.asset.name),
        *([text(each.target_key or ""), text(event.partition_key or "")] if keys else []),
        moment(event.occurred, now),
        text(source_of(event.origin)),
        Text(str(event.id), "dim"),
    ]


def _as_json(each: QueuedEvent) -> dict[str, object]:
    event = each.event
    return {
        "consumer": each.consumer_name,
        "event": str(event.id),
        "sequence": event.sequence,
        "uri": event.uri,
        "target_key": each.target_key,
        "partition_key": event.partition_key,
        "occurred": iso(event.occurred),
        "recorded": iso(event.recorded),
    }


def _check_partition(reader: Reader, meant: Meant, partition: str | None) -> ConsumerRecord | None:
    """The consumer that was named; a pending partition is removed only by naming consumer and key (3.7)."""
    if meant["consumer"] is None:
        if partition is not None or (meant["uri"] is None and meant["event_id"] is None):
            fix = "Name a consumer; or, for plain queues, give --asset or --event"
            raise InvalidCall("whose queue?", rule="3.7", fix=fix)
        return None
    record = reader.consumer_numbered(meant["consumer"])
    assert record is not None, "it was found by its name"
    name = record.consumer.name
    if record.consumer.schedule.is_partitioned and partition is None:
        keys = sorted(key for key in reader.pending(record.consumer.id) if key is not None)
        known = f"; pending are {some(keys)}" if keys else ""
        raise InvalidCall(f"{name} is partitioned{known}", rule="3.7", fix="Name the partition with --partition")
    if partition is not None and not record.consumer.schedule.is_partitioned:
        raise InvalidCall(f"{name} is not partitioned", rule="3.7", fix="Leave --partition out")
    return record
