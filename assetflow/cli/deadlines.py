"""`assetflow deadlines ls`: list the deadlines that were missed. Contract 9.8."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import cyclopts
from rich.text import Text

from assetflow.cli.output import empty_message, print_json, rows, show, table, text, time_cell
from assetflow.cli.values import AsJson, AtLeastOne
from assetflow.cli.watch import lists
from assetflow.core.values.words import some
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import MissedDeadlineRecord
from assetflow.operations.lookup import find_consumer

app = cyclopts.App(name="deadlines", help="Deadlines that were missed.")

_COLUMNS = ("#", "consumer", "key", "due", "looked at", "then", "queued", "not updated")


@app.command
@lists
def ls(*, consumer: str | None = None, limit: AtLeastOne = 50, json: AsJson = False) -> None:
    """List the deadlines that passed without a decision, newest first.

    Parameters
    ----------
    consumer
        List only deadlines of this consumer: flow/deployment, its id, or a flow with one consumer.
    limit
        The largest number of deadlines to list.
    """
    with Reader.open() as reader:
        number = None if consumer is None else find_consumer(reader, consumer).consumer.id
        found = reader.deadlines.missed(consumer=number, limit=limit)
        names = reader.assets.names({uri for each in found for uri in each.missing})
        empty = empty_message(reader, "No deadline was missed.")
    if json:
        print_json(found)
        return
    now = datetime.now(UTC)
    made = table(*_COLUMNS, right=("#", "queued"))
    show(rows(made, (_cells(each, names, now) for each in found), empty=empty))


def _cells(each: MissedDeadlineRecord, names: Mapping[str, str], now: datetime) -> list[Text]:
    return [
        Text(str(each.number)),
        text(each.consumer_name),
        text(each.target_key or ""),
        time_cell(each.due, now),
        time_cell(each.at, now),
        Text(each.then),
        Text(str(each.queued)),
        text(some([names[uri] for uri in each.missing])),
    ]
