"""`assetflow assets ls`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import cyclopts
from rich.text import Text

from assetflow.cli.output import empty_message, lines, print_json, rows, show, table, text, time_cell
from assetflow.cli.values import AsJson, AssetName, this_user
from assetflow.cli.watch import lists
from assetflow.core.shapes import TextOrNull, shape
from assetflow.core.values.conditions import Token
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import AssetRecord, DeclaredEdge, RedactedExtra
from assetflow.operations import lookup
from assetflow.operations.installation import Installation

app = cyclopts.App(name="assets", help="Assets: what tasks update and flows run on.")
app.command(
    "assetflow.cli.asset_status:status", name="status", help="Show whether assets are up to date, and what has changed."
)

app.command("assetflow.cli.asset_facts:show_asset", name="show", help="Show one asset: its flows and latest updates.")
app.command("assetflow.cli.asset_checks:show_checks", name="checks", help="Show what the checks of an asset found.")
app.command("assetflow.cli.assets:hide", name="hide", help="Hide an asset that no flow declares or runs on.")
app.command("assetflow.cli.assets:unhide", name="unhide", help="Show a hidden asset again.")

ByToken = dict[Token, list[str]]


@shape
class AssetLine:
    """An asset with the flows that update it and the flows that run on it."""

    id: int
    uri: str
    names: Sequence[str]
    group: TextOrNull
    extra: RedactedExtra
    aliases: Sequence[str]
    first_seen: datetime
    last_update: datetime | None
    events: int
    producers: Sequence[str]
    consumers: Sequence[str]
    hidden: bool


@app.command
@lists
def ls(*, group: str | None = None, hidden: bool = False, wide: bool = False, json: AsJson = False) -> None:
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
    with Reader.open() as reader:
        listed = list_assets(reader, hidden=hidden)
        found = [each for each in listed if group in (None, each.group)]
        empty = empty_message(reader, _nothing(group, hidden, listed))
    if json:
        print_json(found)
        return
    now = datetime.now(UTC)
    columns = ("asset", "uri", "group", "last update", "events", "producers", "consumers")
    made = table(*columns, right=("events",), whole=("uri",))
    cells = (_cells(each, now) for each in found)
    show(rows(made, cells, empty=empty, spare=("uri", "group", "events"), wide=wide), wide=wide)


def _nothing(group: str | None, hidden: bool, listed: Sequence[AssetLine]) -> str:
    """Return why there is nothing to list; an option may leave out all that is there."""
    if not listed:
        return "No hidden assets." if hidden else "No assets yet: deploy or run a flow whose task has outlets."
    groups = sorted({each.group for each in listed if each.group})
    return f"No assets in the group {group}. Groups: {', '.join(groups) or 'none'}."


def list_assets(reader: Reader, *, hidden: bool) -> list[AssetLine]:
    """Return the assets that are hidden, or all others, ordered by URI."""
    left_out = reader.assets.hidden()
    activity = reader.assets.activity()
    producers, consumers = _producers(reader.lineage.declared()), _consumers(reader)
    return [
        AssetLine(
            **vars(asset),
            last_update=activity[asset.uri].last if asset.uri in activity else None,
            events=activity[asset.uri].events if asset.uri in activity else 0,
            producers=_names(producers, asset),
            consumers=_names(consumers, asset),
            hidden=hidden,
        )
        for asset in reader.assets.all()
        if (asset.uri in left_out) == hidden
    ]


def _producers(edges: Iterable[DeclaredEdge]) -> ByToken:
    found: ByToken = {}
    for edge in edges:
        if edge.direction == "produces":
            found.setdefault(Token(edge.kind, edge.value), []).append(edge.name)
    return found


def _consumers(reader: Reader) -> ByToken:
    found: ByToken = {}
    for record in reader.consumers.all():
        for token in record.consumer.schedule.tokens:
            found.setdefault(token, []).append(record.consumer.name)
    return found


def _names(by_token: ByToken, asset: AssetRecord) -> list[str]:
    tokens = [Token("uri", asset.uri)]
    tokens += [Token("name", name) for name in asset.names]
    tokens += [Token("alias", alias) for alias in asset.aliases]
    return sorted({name for token in tokens for name in by_token.get(token, ())})


def _cells(each: AssetLine, now: datetime) -> list[Text]:
    uri = each.uri
    name = ", ".join(name for name in each.names if name != uri) or uri
    return [
        text(name),
        # On a terminal, a URI without a name stands once.
        text("" if name == uri and sys.stdout.isatty() else uri),
        text(each.group),
        time_cell(each.last_update, now),
        Text(str(each.events)),
        lines(each.producers),
        lines(each.consumers),
    ]


def hide(asset: AssetName, /, *, json: AsJson = False) -> None:
    """Hide an asset that no flow declares or runs on, until its next update.

    Lists, graph and search leave it out. It is also shown while a flow declares it. Its events stay."""
    from assetflow.ledger import Ledger

    with Ledger.open() as ledger:
        uri = lookup.hide(Installation(ledger), asset, by=this_user())
    _tell(uri, hidden=True, json=json)


def unhide(asset: AssetName, /, *, json: AsJson = False) -> None:
    """Show a hidden asset again."""
    from assetflow.ledger import Ledger

    with Ledger.open() as ledger:
        uri = lookup.unhide(Installation(ledger), asset)
    _tell(uri, hidden=False, json=json)


def _tell(uri: str, *, hidden: bool, json: bool) -> None:
    if json:
        print_json({"uri": uri, "hidden": hidden})
    else:
        show(text(f"{uri} is hidden until its next update." if hidden else f"{uri} is shown."))
