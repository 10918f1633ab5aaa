"""`assetflow assets`: list assets, show one with its status and its checks, and hide what no flow uses."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import cyclopts
from rich.console import RenderableType
from rich.text import Text

from assetflow.cli.layouts import UNKNOWN, events_table, freshness_cell, state_cell, status_parts
from assetflow.cli.output import (
    NOTHING_KEPT,
    answer,
    empty_message,
    lines,
    lists,
    print_json,
    reads,
    rows,
    show,
    tell,
    text,
    time_cell,
)
from assetflow.cli.values import AsJson, AssetName, Wide, this_user
from assetflow.core.explain import shown_event
from assetflow.core.explain.status import Status
from assetflow.core.shapes import as_json, shape
from assetflow.core.values.addresses import redact
from assetflow.core.values.events import CheckedData, CheckHistory, CheckResult
from assetflow.core.values.words import ago, at, shown
from assetflow.errors import InvalidCall
from assetflow.ledger.read.assets import AssetUsers, ListedAsset
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import AssetRecord, EventFilter
from assetflow.operations import lookup
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_asset, find_uri

app = cyclopts.App(name="assets", help="Assets: what tasks update and flows run on.")


@shape
class AssetLine(AssetRecord):
    """An asset with the flows that update it and the flows that run on it."""

    last_update: datetime | None
    events: int
    producers: Sequence[str]
    consumers: Sequence[str]
    hidden: bool


@app.command
@lists
@reads
def ls(
    reader: Reader, /, *, group: str | None = None, hidden: bool = False, wide: bool = False, json: AsJson = False
) -> None:
    """List the assets: when each was last updated, which flows update it, and which flows run on it.

    Parameters
    ----------
    group
        List only assets of this group.
    hidden
        List only hidden assets, instead of all others.
    wide
        Show all columns, however wide the terminal is.
    """
    listed = list_assets(reader, hidden=hidden)
    found = [each for each in listed if group in (None, each.group)]
    columns = ("asset", "uri", "group", "last update", "events", "producers", "consumers")
    answer(
        found,
        columns,
        map(_cells, found),
        right=("events",),
        whole=("uri",),
        json=json,
        empty=empty_message(reader, _nothing(group, hidden, listed)),
        spare=("uri", "group", "events"),
        wide=wide,
    )


def _nothing(group: str | None, hidden: bool, listed: Sequence[AssetLine]) -> str:
    """Return why there is nothing to list; an option may leave out all that is there."""
    if not listed:
        return "No hidden assets." if hidden else "No assets yet: deploy or run a flow whose task has outlets."
    groups = sorted({each.group for each in listed if each.group})
    return f"No assets in the group {group}. Groups: {', '.join(groups) or 'none'}."


def list_assets(reader: Reader, *, hidden: bool) -> list[AssetLine]:
    """Return the assets that are hidden, or all others, ordered by URI."""
    left_out, activity = reader.assets.hidden(), reader.assets.activity()
    listed = [asset for asset in reader.assets.all() if (asset.uri in left_out) == hidden]
    users = reader.assets.users_of(listed)
    # An Eager or Lazy flow reads its assets; it does not run on them.
    keeping = {each.consumer.name for each in reader.consumers.all() if each.consumer.schedule.keeping is not None}
    return [
        AssetLine(
            **vars(asset),
            last_update=activity[asset.uri].last if asset.uri in activity else None,
            events=activity[asset.uri].events if asset.uri in activity else 0,
            producers=sorted(users[asset.uri].producers),
            consumers=sorted(users[asset.uri].scheduled.keys() - keeping),
            hidden=hidden,
        )
        for asset in listed
    ]


def _cells(each: AssetLine) -> list[Text]:
    uri = each.uri
    name = ", ".join(name for name in each.names if name != uri) or uri
    return [
        text(name),
        # On a terminal, a URI without a name stands once.
        text("" if name == uri and sys.stdout.isatty() else uri),
        text(each.group),
        time_cell(each.last_update),
        Text(str(each.events)),
        lines(each.producers),
        lines(each.consumers),
    ]


@app.command(help="Hide an asset that no flow declares or runs on.")
def hide(asset: AssetName, /, *, json: AsJson = False) -> None:
    """Hide an asset that no flow declares or runs on, until its next update.

    Lists, graph and search leave it out. It is also shown while a flow declares it. Its events stay."""
    from assetflow.ledger import Ledger

    with Ledger.open() as ledger:
        uri = lookup.hide(Installation(ledger), asset, by=this_user())
    _tell_hidden(uri, hidden=True, json=json)


@app.command(help="Show a hidden asset again.")
def unhide(asset: AssetName, /, *, json: AsJson = False) -> None:
    """Show a hidden asset again."""
    from assetflow.ledger import Ledger

    with Ledger.open() as ledger:
        uri = lookup.unhide(Installation(ledger), asset)
    _tell_hidden(uri, hidden=False, json=json)


def _tell_hidden(uri: str, *, hidden: bool, json: bool) -> None:
    words = f"{uri} is hidden until its next update." if hidden else f"{uri} is shown."
    tell({"uri": uri, "hidden": hidden}, text(words), json=json)


@app.command(name="checks", help="Show what the checks of an asset found.")
@reads
def show_checks(
    reader: Reader,
    asset: AssetName,
    /,
    *,
    key: str | None = None,
    limit: int = 10,
    wide: Wide = False,
    json: AsJson = False,
) -> None:
    """Show what the checks of an asset found in its last updates, and in data that was held back, newest first.

    Parameters
    ----------
    key
        Only in this partition.
    limit
        So many updates are looked at.
    """
    uri = find_uri(reader, asset)
    found = CheckHistory(uri, reader.checks.history(uri, key, limit=limit))
    answer(
        found,
        ("time", "partition", "check", "result", "became"),
        _check_lines(found.history),
        whole=("check",),
        json=json,
        empty=empty_message(reader, "No update of this asset was checked: its task declares no checks=."),
        spare=("partition",),
        wide=wide,
    )


def _check_lines(items: Iterable[CheckedData]) -> Iterable[list[Text]]:
    for each in items:
        became = text("an update") if each.event_id is not None else text("held back", "red")
        for result in each.checks:
            yield [time_cell(each.at), text(each.partition_key), text(result.check), _check_result(result), became]


def _check_result(result: CheckResult) -> Text:
    if result.passed:
        return text("passed", "green")
    return text(f"failed {result.describe()}", "yellow" if result.severity == "warn" else "red")


_LATEST = 5


@app.command(name="show", help="Show one asset: its flows and latest updates.")
@reads
def show_asset(reader: Reader, asset: str, /, *, wide: Wide = False, json: AsJson = False) -> None:
    """Show one asset: which flows make it, run on it and read it, whether it is up to date, and its latest updates.

    Parameters
    ----------
    asset
        The asset's URI or its name.
    """
    now = datetime.now(UTC)
    found = find_asset(reader, asset)
    uri, users = found.uri, found.users
    latest = reader.events.find(EventFilter(uri=uri), newest_first=True, limit=_LATEST)
    status = reader.freshness.status(uri, None, now)
    failed = reader.ended_runs.failed_makers([uri])
    troubles = [text(each.as_maker(), "red") for each in failed]
    document = as_json(found.listed.shown(users)) | {"status": status, "failed_makers": failed}
    document |= {"latest_events": [shown_event(event) for event in latest]}
    events = events_table(latest, empty=empty_message(reader, "It was never updated."), wide=wide)
    tell(document, *_facts(found.listed, users, status, now), *troubles, Text(), events, json=json)


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
        "made by": _joined(users.producers),
        "runs": _joined(users.scheduled),
        "read by": _joined(users.readers),
        "aliases": _joined(record.aliases),
        "extra": text(json_format.dumps(redact(record.extra), ensure_ascii=False)) if record.extra else Text(),
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        if str(value):
            yield Text.assemble((f"{name:<{width}}  ", "dim"), value)


def _joined(names: Iterable[str]) -> Text:
    return Text(", ".join(map(shown, sorted(names))))


@app.command(help="Show whether assets are up to date, and what has changed.")
@lists
def status(
    asset: str | None = None,
    /,
    *,
    key: str | None = None,
    stale: bool = False,
    wide: bool = False,
    json: AsJson = False,
) -> int:
    """Show whether assets are up to date, and what has changed since they were made.

    The exit status is 1 if one of them fails its freshness policy, else 3 if the state of one is not known now.

    Parameters
    ----------
    asset
        One asset, by its URI or name. Without it, all assets that Eager and Lazy flows need.
    key
        One partition of the asset.
    stale
        List only assets that are not up to date, or made from something that is not.
    wide
        Show all columns, however wide the terminal is.
    """
    if key is not None and asset is None:
        raise InvalidCall("--key needs an asset", fix="Write `assetflow assets status URI --key KEY`")
    now = datetime.now(UTC)
    with Reader.open() as reader:
        if asset is None:
            found = reader.freshness.statuses(None, now)
        else:
            found = [reader.freshness.status(find_uri(reader, asset), key, now)]
        names = reader.assets.names([each.uri for each in found])
        empty = empty_message(reader, "Everything is up to date." if found else NOTHING_KEPT)
    fails = any(each.freshness == "fail" for each in found)
    unknown = any(each.why for each in found)
    found = [each for each in found if each.outdated or not stale]
    if json:
        print_json(found if asset is None else found[0] if found else None)
    elif asset is None:
        cells = (_status_cells(each, names[each.uri]) for each in found)
        show(
            rows(
                ("asset", "uri", "state", "freshness", "made by", "why"),
                cells,
                whole=("uri",),
                empty=empty,
                spare=("uri", "made by"),
                wide=wide,
            ),
            wide=wide,
        )
    else:
        show(*(part for each in found for part in status_parts(each)))
    return 1 if fails else UNKNOWN if unknown else 0


def _status_cells(status: Status, name: str) -> list[Text]:
    more = len(status.causes) - 1
    why = status.causes[0].words + (f", and {more} more" if more > 0 else "") if status.causes else ""
    made_by = text(status.producer or "")
    return [text(name), text(status.uri), state_cell(status), freshness_cell(status), made_by, text(why)]
