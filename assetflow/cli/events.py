"""`assetflow events ls|show`: list events, or show one with its receipts."""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping
from datetime import UTC, datetime

import cyclopts
from rich.text import Text

from assetflow.cli.empty_lists import empty_message
from assetflow.cli.explanation_output import show_explanation
from assetflow.cli.output import print_json, rows, show, table, text, time_cell
from assetflow.cli.values import AtLeastOne, EventName
from assetflow.core.codec.events import event_to_json
from assetflow.core.events import AssetEvent
from assetflow.core.explanation import source_of
from assetflow.core.redaction import redact, redacted
from assetflow.core.visible import shown
from assetflow.ledger.read.explanations import event_explanation
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter, RefusedRecord
from assetflow.operations.lookup import find_event, find_uri

app = cyclopts.App(name="events", help="Events: updates of assets, and what each consumer did with them.")

_SHOWN = 60


@app.command
def ls(*, asset: str | None = None, limit: AtLeastOne = 50, refused: bool = False, json: bool = False) -> None:
    """List events, newest first.

    Parameters
    ----------
    asset
        List only updates of this asset: its URI or its name.
    limit
        The largest number of events to list.
    refused
        List the events that were refused instead, with the reasons.
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        if refused:
            _refused(reader.events.refused(limit=limit), json, empty_message(reader, "Nothing was refused."))
            return
        query = EventFilter(uri=None if asset is None else find_uri(reader, asset))
        found = reader.events.find(query, newest_first=True, limit=limit)
        empty = empty_message(reader, "No events yet: run a flow whose task has outlets.")
    if json:
        print_json([event_to_json(redacted(event)) for event in found])
        return
    now = datetime.now(UTC)
    made = table("#", "asset", "key", "occurred", "by", "extra", "id", right=("#",), whole=("id",))
    show(rows(made, (_cells(event, now) for event in found), empty=empty, spare=("extra", "by", "id")))


@app.command(name="show")
def show_event(event: EventName, /, *, json: bool = False) -> None:
    """Show an event: where it came from, and what each consumer did with it.

    Parameters
    ----------
    event
        The event's id, or its number in the ledger; `assetflow events ls` shows both.
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        explanation = event_explanation(reader, find_event(reader, event))
    show_explanation(explanation, json=json)


def _cells(event: AssetEvent, now: datetime) -> list[Text]:
    return [
        Text(str(event.sequence)),
        text(event.asset.name),
        text(event.partition_key or ""),
        time_cell(event.occurred, now),
        text(source_of(event.origin)),
        Text(_shortened(event.extra)),
        Text(str(event.id), "dim"),
    ]


def _shortened(extra: Mapping[str, object]) -> str:
    if not extra:
        return ""
    extra_text = shown(json_format.dumps(redact(extra), ensure_ascii=False))
    return extra_text if len(extra_text) <= _SHOWN else f"{extra_text[: _SHOWN - 1]}…"


def _refused(found: list[RefusedRecord], json: bool, empty: str) -> None:
    if json:
        print_json([each.as_json() for each in found])
        return
    now = datetime.now(UTC)
    made = table("at", "reason", "rule", "source", "id", whole=("id",))
    cells = (
        [time_cell(each.at, now), *map(text, (each.reason, each.rule or "", each.source, each.id))] for each in found
    )
    show(rows(made, cells, empty=empty, spare=("source", "rule", "id")))
