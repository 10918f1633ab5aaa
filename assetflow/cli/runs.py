"""`assetflow runs` and `assetflow decisions`: what has run, and the decisions behind it, to list, show or give up."""

from __future__ import annotations

from datetime import UTC, datetime, time

import cyclopts
from rich.text import Text

from assetflow.cli.layouts import RUN_SPARE, parts_of, runs_table, show_explanation, states_now, took
from assetflow.cli.output import (
    answer,
    empty_message,
    id_cell,
    lists,
    print_json,
    reads,
    rows,
    show,
    state_text,
    tell,
    text,
    time_cell,
)
from assetflow.cli.values import AsJson, AtLeastOne, DecisionName, RunName, Wide, since_option, this_user
from assetflow.core.rules.ended_runs import retry_command
from assetflow.core.shapes import as_json
from assetflow.core.values.words import some
from assetflow.errors import InvalidCall, UnknownConsumer, places
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.explanations import decision_explanation, run_explanation
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord, DecisionStatus
from assetflow.operations import decisions
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_consumer, find_decision, find_run, number_of
from assetflow.operations.needs import ListedRun, list_runs, with_reasons

app = cyclopts.App(name="runs", help="Runs of the flows that are scheduled on assets or make them.")


@app.command
@lists
@reads
def ls(
    reader: Reader,
    /,
    *,
    failed: bool = False,
    running: bool = False,
    since: str | None = None,
    flow: str | None = None,
    key: str | None = None,
    limit: AtLeastOne = 50,
    wide: Wide = False,
    json: AsJson = False,
) -> None:
    """List the runs that have ended, newest first, whoever started them: why each ran, how long it took, its error.

    Parameters
    ----------
    failed
        List only runs that failed or crashed.
    running
        List the runs that assetflow started and that have not ended, as far as the evaluator has heard, instead.
    since
        List only runs that ended since this time, or since so long ago: today, 2026-11-20T08:00:00Z, 90m, 2h, 3d.
    flow
        List only runs of this flow: flow/deployment, the id of a consumer, or a flow with one deployment.
    key
        List only runs for this partition key.
    limit
        The largest number of runs to list.
    """
    of = None if flow is None else _name(reader, flow)
    if running:
        _list_running(reader, of, key, limit, wide=wide, json=json)
        return
    start = datetime.combine(datetime.now(UTC).date(), time(), UTC) if since == "today" else since_option(since)
    found = list_runs(reader, failed=failed, since=start, flow=of, target_key=key, limit=limit)
    is_filtered = failed or since or flow or key
    empty = empty_message(reader, "No such runs." if is_filtered else "No run has ended yet.")
    tell(found, runs_table(found, empty=empty, wide=wide), json=json, wide=wide)


@app.command(name="show")
@reads
def show_run(reader: Reader, run: RunName, /, *, json: AsJson = False) -> None:
    """Show a run: how it ended, and, if assetflow started it, why.

    Parameters
    ----------
    run
        The id of the flow run, as `assetflow runs ls` shows it; its first eight characters are enough.
    """
    run = find_run(reader, run)
    ended = reader.ended_runs.get(run)
    known = None if ended is None else with_reasons(reader, [ended])[0]
    explanation = None
    if known is None or reader.decisions.of_run(run) is not None:
        explanation = run_explanation(reader, run)
    facts = [] if known is None else _facts(known)
    more = [] if explanation is None else parts_of(explanation)
    tell(explanation if known is None else known, *facts, *more, json=json)


def _name(reader: Reader, flow: str) -> str:
    """Return the `flow/deployment` that a user means. A maker that is no consumer is named in full."""
    try:
        return find_consumer(reader, flow).consumer.name
    except UnknownConsumer:
        if not reader.lineage.other_flows(flow, limit=1):
            raise
        return flow


def _facts(run: ListedRun) -> list[Text]:
    """Return how a run ended, line by line."""
    key = "" if run.target_key is None else f" for {run.target_key}"
    return [
        state_text(f"{run.state}: {run.flow}{key} ({run.name})", run.outcome),
        Text.assemble("ended ", time_cell(run.ended), ", took ", took(run)),
        text(f"reason: {run.because}"),
        *([text(f"error: {run.error}")] if run.error else []),
        *([_after_failure(run)] if run.has_failed else []),
    ]


def _after_failure(run: ListedRun) -> Text:
    if run.made_good:
        return text("It was made good since.")
    return text(f"Nothing has made it good. `{retry_command(run.flow, run.target_key)}` lets it try again.")


def _list_running(reader: Reader, flow: str | None, key: str | None, limit: int, *, wide: bool, json: bool) -> None:
    running = reader.decisions.running()
    found = [each for each in running if flow in (None, each.consumer_name) and key in (None, each.target_key)][:limit]
    consumed = reader.decisions.consumed_assets([each.number for each in found])
    if json:
        names = [each.run_name(consumed.get(each.number, ())) for each in found]
        shown = zip(found, names, strict=True)
        print_json([as_json(each) | {"flow_run_name": name} for each, name in shown])
        return
    states = states_now(found)
    cells = (
        [
            text(states.get(each.flow_run_id) or each.status.capitalize(), "cyan"),
            text(each.consumer_name),
            text(each.target_key or ""),
            text(some([asset.shown for asset in consumed.get(each.number, ())]) or each.kind),
            time_cell(each.launched),
            id_cell(each.flow_run_id, wide=wide),
        ]
        for each in found
    )
    show(
        rows(
            ("state", "flow", "key", "because of", "started", "run id"),
            cells,
            empty=empty_message(reader, "No run goes on."),
            spare=RUN_SPARE,
            wide=wide,
        ),
        wide=wide,
    )


decisions_app = cyclopts.App(name="decisions", help="Decisions: why runs were started.")


@decisions_app.command(name="ls")
@lists
def list_decisions(
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
        found = reader.decisions.find(consumer=number_of(reader, consumer), status=status, limit=limit)
        events = {key: len(consumed) for key, consumed in reader.decisions.events_of(found).items()}
        empty = empty_message(reader, "No decisions." if status else "No decisions yet.")
    document = [as_json(each) | {"events": events[each.id]} for each in found]
    columns = ("#", "consumer", "key", "made", "events", "status", "flow run", "decision")
    cells = (_decision_cells(each, events[each.id], wide) for each in found)
    spare = ("decision", "events", "made", "flow run")
    answer(
        document,
        columns,
        cells,
        right=("#", "events"),
        whole=("flow run", "decision"),
        json=json,
        empty=empty,
        spare=spare,
        wide=wide,
    )


@decisions_app.command(name="show")
@reads
def show_one(reader: Reader, decision: DecisionName, /, *, json: AsJson = False) -> None:
    """Show one decision: the events that it consumed, the update that completed its condition, and its run.

    Parameters
    ----------
    decision
        The decision's number, its id, or the id of its flow run, as `assetflow decisions ls` shows them.
    """
    explanation = decision_explanation(reader, find_decision(reader, decision))
    show_explanation(explanation, json=json)


@decisions_app.command
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


def _decision_cells(each: DecisionRecord, events: int, wide: bool) -> list[Text]:
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
