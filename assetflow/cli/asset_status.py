"""`assetflow assets status`: say whether assets are up to date, and what has changed since they were made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.text import Text

from assetflow.cli.output import NOTHING_KEPT, empty_message, print_json, rows, show, table, text
from assetflow.cli.status_output import UNKNOWN, freshness_cell, state_cell, status_parts
from assetflow.cli.values import AsJson
from assetflow.cli.watch import lists
from assetflow.core.explain.status import Status
from assetflow.errors import InvalidCall
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import find_uri


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
        empty = empty_message(reader, _nothing(found))
    fails = any(each.freshness == "fail" for each in found)
    unknown = any(each.why for each in found)
    found = [each for each in found if each.outdated or not stale]
    if json:
        print_json(found if asset is None else found[0] if found else None)
    elif asset is None:
        made = table("asset", "uri", "state", "freshness", "made by", "why", whole=("uri",))
        cells = (_cells(each, names[each.uri]) for each in found)
        show(rows(made, cells, empty=empty, spare=("uri", "made by"), wide=wide), wide=wide)
    else:
        show(*(part for each in found for part in status_parts(each)))
    return 1 if fails else UNKNOWN if unknown else 0


def _nothing(found: Sequence[Status]) -> str:
    return "Everything is up to date." if found else NOTHING_KEPT


def _cells(status: Status, name: str) -> list[Text]:
    more = len(status.causes) - 1
    why = status.causes[0].words + (f", and {more} more" if more > 0 else "") if status.causes else ""
    made_by = text(status.producer or "")
    return [text(name), text(status.uri), state_cell(status), freshness_cell(status), made_by, text(why)]
