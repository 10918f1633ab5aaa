"""`assetflow assets checks`: what the checks of an asset found, in its updates and in data that was held back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from rich.text import Text

from assetflow.cli.output import empty_message, print_json, rows, show, table, text, time_cell
from assetflow.cli.values import AsJson, AssetName, Wide
from assetflow.core.values.events import CheckedData, CheckHistory, CheckResult
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import find_uri


def show_checks(
    asset: AssetName, /, *, key: str | None = None, limit: int = 10, wide: Wide = False, json: AsJson = False
) -> None:
    """Show what the checks of an asset found in its last updates, and in data that was held back, newest first.

    Parameters
    ----------
    key
        Only in this partition.
    limit
        So many updates are looked at.
    """
    with Reader.open() as reader:
        uri = find_uri(reader, asset)
        found = CheckHistory(uri, reader.checks.history(uri, key, limit=limit))
        empty = empty_message(reader, "No update of this asset was checked: its task declares no checks=.")
    if json:
        print_json(found)
        return
    now = datetime.now(UTC)
    made = table("time", "partition", "check", "result", "became", whole=("check",))
    show(rows(made, _lines(found.history, now), empty=empty, spare=("partition",), wide=wide), wide=wide)


def _lines(items: Iterable[CheckedData], now: datetime) -> Iterable[list[Text]]:
    for each in items:
        became = text("an update") if each.event_id is not None else text("held back", "red")
        for result in each.checks:
            yield [time_cell(each.at, now), text(each.partition_key), text(result.check), _result(result), became]


def _result(result: CheckResult) -> Text:
    if result.passed:
        return text("passed", "green")
    return text(f"failed {result.describe()}", "yellow" if result.severity == "warn" else "red")
