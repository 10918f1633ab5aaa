"""`assetflow queue ls|rm|replay`: an operator's work on queues (contract 3.7, 4.6)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

import cyclopts
from rich.text import Text

from assetflow.cli.naming import in_utc, this_user
from assetflow.cli.output import iso, moment, print_json, rows, show, table, text
from assetflow.core.events import AssetEvent
from assetflow.core.explanation import source_of
from assetflow.core.explanation.words import count, some
from assetflow.errors import InvalidCall
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.lookup import find_consumer, find_uri
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import ConsumerRecord

app = cyclopts.App(name="queue", help="Queues: updates that consumers have not consumed yet.")


@app.command
def ls(consumer: str | None = None, /, *, json: bool = False) -> None:
    """List what is queued: how much for each consumer, or each event for one.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer.
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        if consumer is None:
            _list_queues(reader, json)
        else:
            _list_queue(reader, find_consumer(reader, consumer), json)


@app.command
def rm(
    consumer: str,
    /,
    *,
    why: str,
    asset: str | None = None,
    before: datetime | None = None,
    partition: str | None = None,
    by: str | None = None,
    json: bool = False,
) -> None:
    """Remove queued events of a consumer. Each gets a receipt that says who removed it and why.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer.
    why
        The reason, for whoever reads the receipts.
    asset
        Only updates of this asset: its URI or its name.
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
        record = find_consumer(ledger.reader, consumer)
        _check_partition(record, partition, ledger.reader.pending(record.consumer.id))
        removed = ledger.writer.remove_queued(
            record.consumer.id,
            uri=None if asset is None else find_uri(ledger.reader, asset),
            before=None if before is None else in_utc(before),
            target_key=partition,
            by=this_user() if by is None else by,
            why=why,
            now=datetime.now(UTC),
        )
    if json:
        print_json({"consumer": record.consumer.name, "partition": partition, "removed": removed})
    else:
        show(text(f"{count(removed, 'event')} removed from the queue of {record.consumer.name}"))


@app.command
def replay(decision: UUID, /, *, json: bool = False) -> None:
    """Let an undeliverable decision be launched again, by the evaluator.

    Parameters
    ----------
    decision
        The decision's id; `assetflow decisions ls --undeliverable` lists them.
    json
        Print one JSON document.
    """
    with Ledger.open() as ledger:
        ledger.writer.replay(decision)
    if json:
        print_json({"decision": str(decision), "status": "waiting"})
    else:
        show(text(f"decision {decision} waits for its run again"))


def _list_queues(reader: Reader, json: bool) -> None:
    sizes = reader.queue_sizes()
    found = [(record.consumer, sizes.get(record.consumer.id, 0)) for record in reader.consumers()]
    if json:
        print_json([{"consumer": consumer.name, "id": consumer.id, "queued": size} for consumer, size in found])
        return
    made = table("consumer", "queued", "runs on", right=("queued",))
    cells = ([text(consumer.name), Text(str(size)), text(consumer.schedule.describe())] for consumer, size in found)
    show(rows(made, cells, empty="No consumers yet: deploy a flow that is scheduled on assets."))


def _list_queue(reader: Reader, record: ConsumerRecord, json: bool) -> None:
    pending = sorted(reader.pending(record.consumer.id), key=lambda key: key or "")
    found = [(key, event) for key in pending for event in reader.queue(record.consumer.id, key)]
    if json:
        print_json([_as_json(key, event) for key, event in found])
        return
    now = datetime.now(UTC)
    partitioned = record.consumer.schedule.is_partitioned
    keys = ("partition", "key") if partitioned else ()
    made = table("#", "asset", *keys, "occurred", "by", "id", right=("#",), whole=("id",))
    show(rows(made, (_cells(key, event, partitioned, now) for key, event in found), empty="Nothing is queued."))


def _cells(key: str | None, event: AssetEvent, partitioned: bool, now: datetime) -> list[Text]:
    keys = [text(key or ""), text(event.partition_key or "")] if partitioned else []
    return [
        Text(str(event.sequence)),
        text(event.asset.name),
        *keys,
        moment(event.occurred, now),
        text(source_of(event.origin)),
        Text(str(event.id), "dim"),
    ]


def _as_json(key: str | None, event: AssetEvent) -> dict[str, object]:
    return {
        "event": str(event.id),
        "sequence": event.sequence,
        "uri": event.uri,
        "target_key": key,
        "partition_key": event.partition_key,
        "occurred": iso(event.occurred),
        "recorded": iso(event.recorded),
    }


def _check_partition(record: ConsumerRecord, partition: str | None, pending: Iterable[str | None]) -> None:
    """A pending partition is removed only by naming consumer and key (3.7)."""
    name = record.consumer.name
    if record.consumer.schedule.is_partitioned and partition is None:
        keys = sorted(key for key in pending if key is not None)
        known = f"; pending are {some(keys)}" if keys else ""
        raise InvalidCall(f"{name} is partitioned{known}", rule="3.7", fix="Name the partition with --partition")
    if partition is not None and not record.consumer.schedule.is_partitioned:
        raise InvalidCall(f"{name} is not partitioned", rule="3.7", fix="Leave --partition out")
