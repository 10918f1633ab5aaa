"""`assetflow assets show`: everything about one asset that one asks first."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterable
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.text import Text

from assetflow.cli.events import events_table
from assetflow.cli.output import empty_message, print_json, show, text
from assetflow.cli.status_output import state_cell
from assetflow.cli.values import AsJson, Wide
from assetflow.core.explain import shown_event
from assetflow.core.explain.status import Status
from assetflow.core.shapes import as_json
from assetflow.core.values.addresses import redact
from assetflow.core.values.words import ago, at, shown
from assetflow.errors import UnknownAsset
from assetflow.ledger.read.assets import AssetUsers, ListedAsset
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter
from assetflow.operations.lookup import find_uri

_LATEST = 5


def show_asset(asset: str, /, *, wide: Wide = False, json: AsJson = False) -> None:
    """Show one asset: which flows make it, run on it and read it, whether it is up to date, and its latest updates.

    Parameters
    ----------
    asset
        The asset's URI or its name.
    """
    now = datetime.now(UTC)
    with Reader.open() as reader:
        uri = find_uri(reader, asset)
        found = reader.assets.get(uri=uri)
        if found is None:
            raise UnknownAsset(f"no asset is called {asset!r}", fix="`assetflow assets ls` lists the assets")
        users = reader.assets.users_of([found.record])[uri]
        latest = reader.events.find(EventFilter(uri=uri), newest_first=True, limit=_LATEST)
        status = reader.freshness.status(uri, None, now)
        failed = reader.ended_runs.failed_makers([uri])
        empty = empty_message(reader, "It was never updated.")
    if json:
        events = [shown_event(event) for event in latest]
        print_json(as_json(found.shown(users)) | {"status": status, "failed_makers": failed, "latest_events": events})
        return
    troubles = [text(each.as_maker(), "red") for each in failed]
    show(*_facts(found, users, status, now), *troubles, Text(), events_table(latest, now, empty=empty, wide=wide))


def _facts(found: ListedAsset, users: AssetUsers, status: Status, now: datetime) -> Iterable[RenderableType]:
    record = found.record
    yield Text.assemble(
        text(found.name, "bold"), *([] if found.name == record.uri else ["  ", text(record.uri, "dim")])
    )
    last = "never" if found.last_time is None else f"{ago(found.last_time, now)}, {at(found.last_time)}"
    facts = {
        "updated": Text(last),
        "status": state_cell(status),
        "group": text(record.group),
        "made by": _names(users.producers),
        "runs": _names(users.scheduled),
        "read by": _names(users.readers),
        "aliases": _names(record.aliases),
        "extra": text(json_format.dumps(redact(record.extra), ensure_ascii=False)) if record.extra else Text(),
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        if str(value):
            yield Text.assemble((f"{name:<{width}}  ", "dim"), value)


def _names(names: Iterable[str]) -> Text:
    return Text(", ".join(map(shown, sorted(names))))
