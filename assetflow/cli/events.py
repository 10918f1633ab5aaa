"""`assetflow events ls|show`: list events, or show one with its receipts."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterable, Mapping

import cyclopts
from rich.console import RenderableType
from rich.text import Text

from assetflow.cli.layouts import show_explanation
from assetflow.cli.output import (
    answer,
    empty_message,
    id_cell,
    lists,
    rows,
    table,
    tell,
    text,
    time_cell,
)
from assetflow.cli.values import AsJson, AtLeastOne, EventName, Wide, since_option
from assetflow.core.explain import shown_event, source_of
from assetflow.core.values.addresses import redact
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import shown
from assetflow.ledger.read.explanations import event_explanation
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter, RefusedRecord
from assetflow.operations.lookup import find_consumer, find_event, find_uri

app = cyclopts.App(name="events", help="Events: updates of assets, and what each consumer did with them.")

_SHOWN = 60


@app.command
@lists
def ls(
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
    with Reader.open() as reader:
        if refused:
            listed = reader.events.refused(limit=limit)
            _refused(listed, wide=wide, json=json, empty=empty_message(reader, "Nothing was refused."))
            return
        query = EventFilter(
            uri=None if asset is None else find_uri(reader, asset),
            partition_key=key,
            consumer=None if consumer is None else find_consumer(reader, consumer).consumer.id,
            since=since_option(since),
        )
        found = reader.events.find(query, newest_first=True, limit=limit)
        none = "No events yet: run a flow whose task has outlets." if query == EventFilter() else "No such events."
        empty = empty_message(reader, none)
    tell([shown_event(event) for event in found], events_table(found, empty=empty, wide=wide), json=json, wide=wide)


@app.command(name="show")
def show_event(event: EventName, /, *, json: AsJson = False) -> None:
    """Show an event: where it came from, and what each consumer did with it.

    Parameters
    ----------
    event
        The event's id or its first eight characters, or its number; `assetflow events ls` shows both.
    """
    with Reader.open() as reader:
        explanation = event_explanation(reader, find_event(reader, event))
    show_explanation(explanation, json=json)


def events_table(found: Iterable[AssetEvent], *, empty: str, wide: bool) -> RenderableType:
    """Return a table of events.

    Parameters:
        empty: what to say without events.
        wide: the command's `--wide`.
    """
    made = table("#", "asset", "key", "occurred", "by", "extra", "id", right=("#",), whole=("id",))
    cells = (_cells(event, wide) for event in found)
    return rows(made, cells, empty=empty, spare=("extra", "by", "id"), wide=wide)


def _cells(event: AssetEvent, wide: bool) -> list[Text]:
    return [
        Text(str(event.sequence)),
        text(event.asset.name),
        text(event.partition_key or ""),
        time_cell(event.occurred),
        text(source_of(event.origin)),
        Text(_shortened(event.extra)),
        id_cell(event.id, wide=wide),
    ]


def _shortened(extra: Mapping[str, object]) -> str:
    if not extra:
        return ""
    extra_text = shown(json_format.dumps(redact(extra), ensure_ascii=False))
    return extra_text if len(extra_text) <= _SHOWN else f"{extra_text[: _SHOWN - 1]}…"


def _refused(found: list[RefusedRecord], *, wide: bool, json: bool, empty: str) -> None:
    made = table("at", "reason", "rule", "source", "id", whole=("id",))
    cells = (
        [
            time_cell(each.at),
            *map(text, (each.reason, each.rule or "", each.source)),
            id_cell(each.id, wide=wide),
        ]
        for each in found
    )
    answer(found, made, cells, json=json, empty=empty, spare=("source", "rule", "id"), wide=wide)
