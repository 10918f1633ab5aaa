"""`assetflow decisions ls`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import cyclopts
from rich.text import Text

from assetflow.cli.output import moment, print_json, rows, show, table, text
from assetflow.cli.values import AtLeastOne
from assetflow.errors import InvalidCall
from assetflow.ledger.lookup import find_consumer
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import DecisionRecord, DecisionStatus

app = cyclopts.App(name="decisions", help="Decisions: why runs were started.")

_STYLES: dict[DecisionStatus, str] = {"waiting": "yellow", "launched": "cyan", "ended": "", "undeliverable": "red"}


@app.command
def ls(
    *,
    consumer: str | None = None,
    waiting: bool = False,
    undeliverable: bool = False,
    limit: AtLeastOne = 50,
    json: bool = False,
) -> None:
    """List decisions, the newest first, with the runs that they led to.

    Parameters
    ----------
    consumer
        Only those of this consumer: flow/deployment, its id, or a flow with one consumer.
    waiting
        Only those whose run is not started yet.
    undeliverable
        Only those that will have no run, for the reason shown; `assetflow queue replay` starts one again.
    limit
        At most so many.
    json
        Print one JSON document.
    """
    if waiting and undeliverable:
        raise InvalidCall("--waiting and --undeliverable exclude each other", fix="Give one of them")
    status: DecisionStatus | None = "waiting" if waiting else "undeliverable" if undeliverable else None
    with Reader.open() as reader:
        number = None if consumer is None else find_consumer(reader, consumer).consumer.id
        found = reader.decisions(consumer=number, status=status, limit=limit)
        events = {key: len(consumed) for key, consumed in reader.events_of(found).items()}
    if json:
        print_json([each.as_json() | {"events": events[each.id]} for each in found])
        return
    now = datetime.now(UTC)
    columns = ("#", "consumer", "key", "made", "events", "status", *_ids())
    made = table(*columns, right=("#", "events"), whole=_ids())
    cells = (_cells(each, events[each.id], now) for each in found)
    show(rows(made, cells, empty="No decisions." if status else "No decisions yet."))


def _cells(each: DecisionRecord, events: int, now: datetime) -> list[Text]:
    status = Text(each.status, _STYLES[each.status])
    if each.run_state:
        status = text(each.run_state, "" if each.run_state == "Completed" else "red")
    if each.error:
        status.append(f": {text(each.error).plain}")
    return [
        Text(str(each.number)),
        text(each.consumer_name),
        text(each.target_key or ""),
        moment(each.made, now),
        Text(str(events)),
        status,
        *_id_cells(each),
    ]


def _ids() -> tuple[str, ...]:
    # Two ids do not fit on most screens; a decision that has a run is found by its run.
    return ("flow run",) if sys.stdout.isatty() else ("flow run", "decision")


def _id_cells(each: DecisionRecord) -> list[Text]:
    run = "" if each.flow_run_id is None else str(each.flow_run_id)
    if sys.stdout.isatty():
        return [Text(run or f"decision {each.id}", "dim")]
    return [Text(run), Text(str(each.id))]
