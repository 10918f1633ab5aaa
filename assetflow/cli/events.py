"""`assetflow events ls` and `assetflow events show`."""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping
from datetime import UTC, datetime

import cyclopts
from rich.text import Text

from assetflow.cli.output import moment, print_json, rows, show, table, text
from assetflow.cli.telling import event_parts
from assetflow.cli.values import AtLeastOne, EventName
from assetflow.core.codec.events import event_to_json
from assetflow.core.events import AssetEvent
from assetflow.core.explanation import source_of
from assetflow.core.redaction import redact, redacted
from assetflow.core.visible import shown
from assetflow.ledger.explanations import event_explanation
from assetflow.ledger.lookup import find_event, find_uri
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import EventQuery, RefusedRecord

app = cyclopts.App(name="events", help="Events: the updates of assets, and what became of them.")

_SHOWN = 60


@app.command
def ls(*, asset: str | None = None, limit: AtLeastOne = 50, refused: bool = False, json: bool = False) -> None:
    """List events, the newest first.

    Parameters
    ----------
    asset
        Only updates of this asset: its URI or its name.
    limit
        At most so many.
    refused
        What was sent as an event and is none, with the reasons, instead.
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        if refused:
            _refused(reader.refused(limit=limit), json)
            return
        query = EventQuery(uri=None if asset is None else find_uri(reader, asset))
        found = reader.events(query, newest_first=True, limit=limit)
    if json:
        print_json([event_to_json(redacted(event)) for event in found])
        return
    now = datetime.now(UTC)
    made = table("#", "asset", "key", "occurred", "by", "extra", "id", right=("#",), whole=("id",))
    show(rows(made, (_cells(event, now) for event in found), empty="No events yet: run a flow whose task has outlets."))


@app.command(name="show")
def show_event(event: EventName, /, *, json: bool = False) -> None:
    """Show an event: where it came from, and what became of it for each consumer.

    Parameters
    ----------
    event
        The event's id, or its number in the ledger, which `events ls` shows.
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        told = event_explanation(reader, find_event(reader, event))
    if json:
        print_json(told.as_json())
    else:
        show(*event_parts(told))


def _cells(event: AssetEvent, now: datetime) -> list[Text]:
    return [
        Text(str(event.sequence)),
        text(event.asset.name),
        text(event.partition_key or ""),
        moment(event.occurred, now),
        text(source_of(event.origin)),
        Text(_in_short(event.extra)),
        Text(str(event.id), "dim"),
    ]


def _in_short(extra: Mapping[str, object]) -> str:
    if not extra:
        return ""
    told = shown(json_format.dumps(redact(extra), ensure_ascii=False))
    return told if len(told) <= _SHOWN else f"{told[: _SHOWN - 1]}…"


def _refused(found: list[RefusedRecord], json: bool) -> None:
    if json:
        print_json([each.as_json() for each in found])
        return
    now = datetime.now(UTC)
    made = table("at", "reason", "rule", "source", "id", whole=("id",))
    cells = ([moment(each.at, now), *map(text, (each.reason, each.rule or "", each.source, each.id))] for each in found)
    show(rows(made, cells, empty="Nothing was refused."))
