"""`assetflow freshness`: show how fresh the assets with a policy are. Contract 8.11 to 8.15."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.text import Text

from assetflow.cli.output import empty_message, print_json, rows, show, table, text, time_cell
from assetflow.cli.status_output import FRESHNESS_STYLES, UNKNOWN
from assetflow.cli.watch import watchable
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.core.values.spans import rounded_in_words
from assetflow.ledger.read.reader import Reader

_COLUMNS = ("asset", "uri", "state", "since", "lag", "policy", "data time", "made by", "due", "note")
_SPARE = ("uri", "data time", "since", "made by")


@watchable
def freshness(*, wide: bool = False, json: bool = False) -> int:
    """Show how fresh the assets with a freshness policy are.

    The exit status is 1 if one of them fails, else 3 if the state of one is not known now, because no evaluator is
    running or Prefect does not answer.

    Parameters
    ----------
    wide
        Show all columns, however wide the terminal is.
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        found = reader.policies.all()
        names = reader.assets.names([each.uri for each in found])
        empty = empty_message(reader, "No deployed flow names an asset with freshness=FreshnessPolicy(...).")
    now = datetime.now(UTC)
    if json:
        print_json([each.as_json(now) for each in found])
    else:
        cells = (_cells(each, names[each.uri], now) for each in found)
        show(rows(table(*_COLUMNS, whole=("uri",)), cells, empty=empty, spare=_SPARE, wide=wide), wide=wide)
    if any(each.record.state == "fail" for each in found):
        return 1
    return UNKNOWN if any(each.why for each in found) else 0


def _cells(each: AssetFreshness, name: str, now: datetime) -> list[Text]:
    record, lag = each.record, each.lag(now)
    data_time = record.data_time
    return [
        text(name),
        text(each.uri),
        text(each.state_in_words, FRESHNESS_STYLES.get(record.state, "magenta" if each.why else "")),
        time_cell(record.state_since, now),
        Text("" if lag is None else rounded_in_words(lag)),
        text(record.policy.describe()),
        time_cell(data_time, now) if isinstance(data_time, datetime) else Text(data_time.value if data_time else ""),
        text(each.maker or ""),
        time_cell(record.due, now),
        text(each.describe_feasibility()),
    ]
