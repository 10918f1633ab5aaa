"""`assetflow decisions ls|show|give-up`: list decisions, show one, or give one up."""

from __future__ import annotations

import cyclopts
from rich.text import Text

from assetflow.cli.layouts import show_explanation
from assetflow.cli.output import answer, empty_message, id_cell, lists, state_text, table, tell, text, time_cell
from assetflow.cli.values import AsJson, AtLeastOne, DecisionName, Wide, this_user
from assetflow.core.shapes import as_json
from assetflow.errors import InvalidCall, places
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.explanations import decision_explanation
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord, DecisionStatus
from assetflow.operations import decisions
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_consumer, find_decision

app = cyclopts.App(name="decisions", help="Decisions: why runs were started.")


@app.command
@lists
def ls(
    *,
    consumer: str | None = None,
    waiting: bool = False,
    undeliverable: bool = False,
    limit: AtLeastOne = 50,
    wide: Wide = False,
    json: AsJson = False,
) -> None:
    """List decisions, newest first, with the runs that they led to.

    Parameters
    ----------
    consumer
        List only decisions of this consumer: flow/deployment, its id, or a flow with one consumer.
    waiting
        List only decisions whose run has not started; `assetflow decisions give-up` lets later ones go ahead.
    undeliverable
        List only decisions that get no run, for the reason shown; `assetflow queue replay` tries one again.
    limit
        The largest number of decisions to list.
    """
    if waiting and undeliverable:
        raise InvalidCall("--waiting and --undeliverable cannot be given together", fix="Give one of them")
    status: DecisionStatus | None = "waiting" if waiting else "undeliverable" if undeliverable else None
    with Reader.open() as reader:
        number = None if consumer is None else find_consumer(reader, consumer).consumer.id
        found = reader.decisions.find(consumer=number, status=status, limit=limit)
        events = {key: len(consumed) for key, consumed in reader.decisions.events_of(found).items()}
        empty = empty_message(reader, "No decisions." if status else "No decisions yet.")
    document = [as_json(each) | {"events": events[each.id]} for each in found]
    columns = ("#", "consumer", "key", "made", "events", "status", "flow run", "decision")
    made = table(*columns, right=("#", "events"), whole=("flow run", "decision"))
    cells = (_cells(each, events[each.id], wide) for each in found)
    spare = ("decision", "events", "made", "flow run")
    answer(document, made, cells, json=json, empty=empty, spare=spare, wide=wide)


@app.command(name="show")
def show_one(decision: DecisionName, /, *, json: AsJson = False) -> None:
    """Show one decision: the events that it consumed, the update that completed its condition, and its run.

    Parameters
    ----------
    decision
        The decision's number, its id, or the id of its flow run, as `assetflow decisions ls` shows them.
    """
    with Reader.open() as reader:
        explanation = decision_explanation(reader, find_decision(reader, decision))
    show_explanation(explanation, json=json)


@app.command
def give_up(decision: DecisionName, /, *, why: str, by: str | None = None, json: AsJson = False) -> None:
    """Give up a decision that waits for its run, so that later decisions of its consumer can go ahead.

    The decision becomes undeliverable, and its updates stay consumed. `assetflow queue replay` makes it wait for its
    run again.

    Parameters
    ----------
    decision
        The decision's number or its id; `assetflow decisions ls --waiting` shows them.
    why
        The reason, which the decision then shows.
    by
        Who gives it up; by default the user of this process.
    """
    with Ledger.open() as ledger, places(why="--why"):
        found = find_decision(ledger.reader, decision).id
        decisions.give_up(Installation(ledger), found, by=this_user() if by is None else by, why=why)
    words = text(f"Decision {found} is given up: it gets no run.")
    tell({"id": str(found), "status": "undeliverable"}, words, json=json)


def _cells(each: DecisionRecord, events: int, wide: bool) -> list[Text]:
    status = state_text(each.run_state or each.status)
    if each.error:
        status.append(f": {text(each.error).plain}")
    return [
        Text(str(each.number)),
        text(each.consumer_name),
        text(each.target_key or ""),
        time_cell(each.made),
        Text(str(events)),
        status,
        id_cell(each.flow_run_id, wide=wide),
        id_cell(each.id, wide=wide),
    ]
