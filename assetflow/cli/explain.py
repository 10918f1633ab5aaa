"""`assetflow explain`, `lineage` and `trace`: why something runs or does not, and what leads to what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from rich.text import Text

from assetflow.cli.layouts import Explanation, show_asset, show_explanation, states_now
from assetflow.cli.output import mark, reads, tell, text, watchable
from assetflow.cli.values import AsJson, DecisionName, EventName, Wide, ZeroOrMore, since_option
from assetflow.core.explain import ConsumerExplanation, DecisionExplanation, PartitionExplanation
from assetflow.core.explain.trace import TraceLine, drawn, line_words
from assetflow.core.graph.lineage import Way, loops_through
from assetflow.core.values.words import IdStart, ago, at, count
from assetflow.errors import InvalidCall, UnknownConsumer, UnknownEvent
from assetflow.ledger.read.explanations import (
    asset_explanation,
    consumer_explanation,
    decision_explanation,
    event_explanation,
    partition_explanation,
    past_explanation,
    run_explanation,
)
from assetflow.ledger.read.reader import Reader
from assetflow.operations.graph import Graph, Placed, Wanted, graph_of, trace_of
from assetflow.operations.lookup import find_consumer, find_decision, find_event, find_node, find_run, find_uri


def explain(
    consumer: str | None = None,
    /,
    *,
    key: str | None = None,
    at: str | None = None,
    run: DecisionName | None = None,
    event: EventName | None = None,
    asset: str | None = None,
    json: AsJson = False,
) -> None:
    """Explain why a consumer or a run runs, what became of an event, or what an asset was made from.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer. The id of a flow run stands for --run.
    key
        A pending partition of the consumer, or a partition of the asset.
    at
        Explain why the consumer ran, or did not, at this time: 02:00 for the last time it was that, UTC, 2h for two
        hours ago, or 2026-11-20T02:00:00Z.
    run
        A flow run, by its id or that of its decision: show the decision that started it, and the update that completed
        its condition.
    event
        The id or number of an event: show where it came from, and each of its receipts.
    asset
        The URI or name of an asset: show whether it is up to date, and the versions that were read beside those of now.
    """
    moment = since_option(at, "--at")
    given = sum(each is not None for each in (consumer, run, event, asset))
    if given != 1 or (at is not None and consumer is None) or (key is not None and (run or event) is not None):
        raise InvalidCall(
            "exactly one of a consumer, --run, --event and --asset is needed; --at needs a consumer, and --key a "
            "consumer or an asset",
            fix="Write `assetflow explain flow/deployment`",
        )
    with Reader.open() as reader:
        if asset is not None:
            show_asset(asset_explanation(reader, find_uri(reader, asset), key, datetime.now(UTC)), json=json)
            return
        if event is not None:
            explanation: Explanation = event_explanation(reader, find_event(reader, event))
        elif run is not None:
            explanation = _with_run_now(_of_run(reader, run))
        else:
            explanation = _of_name(reader, consumer or "", key, moment)
    show_explanation(explanation, json=json)


def _of_run(reader: Reader, run: DecisionName) -> DecisionExplanation:
    if isinstance(run, UUID):
        return run_explanation(reader, run)
    try:
        return decision_explanation(reader, find_decision(reader, run))
    except UnknownEvent:
        # What is read as a number may be the beginning of an id, too.
        start = IdStart.of(str(run))
        if start is not None and reader.ended_runs.beginning(start, 1):
            return run_explanation(reader, find_run(reader, start))
        raise


def _of_name(reader: Reader, name: str, key: str | None, moment: datetime | None) -> Explanation:
    """Explain a consumer, or the run whose id the user gives in its place."""
    try:
        return _of_consumer(reader, name, key, moment)
    except UnknownConsumer:
        run = IdStart.of(name) if key is None and moment is None else None
        if run is None or not reader.ended_runs.beginning(run, 1):
            raise
    return _with_run_now(_of_run(reader, run))


def _of_consumer(
    reader: Reader, name: str, key: str | None, moment: datetime | None
) -> ConsumerExplanation | PartitionExplanation:
    record = find_consumer(reader, name)
    if key is not None and not record.consumer.schedule.is_partitioned:
        raise InvalidCall(f"{record.consumer.name} is not partitioned", fix="Leave --key out")
    if moment is not None:
        return past_explanation(reader, record, moment, key)
    if key is None:
        loops = loops_through(reader.lineage.edges_of, record.consumer.name)
        explanation = consumer_explanation(reader, record, datetime.now(UTC), loops=loops)
        return explanation if explanation.last is None else replace(explanation, last=_with_run_now(explanation.last))
    return partition_explanation(reader, record, key)


def _with_run_now(explanation: DecisionExplanation) -> DecisionExplanation:
    # Import the HTTP client only if Prefect knows more: the run has not ended, or has failed.
    run = explanation.facts.run
    if run.flow_run_id is None or (run.ended is not None and not run.has_failed):
        return explanation
    from assetflow.prefect_io.open_runs import with_run_now

    return with_run_now(explanation, datetime.now(UTC))


@watchable
@reads
def lineage(reader: Reader, what: str, /, *, up: ZeroOrMore = 1, down: ZeroOrMore = 3, json: AsJson = False) -> None:
    """Show what leads to an asset or a flow, and what follows from it.

    Parameters
    ----------
    what
        An asset by its URI or name, or a flow as `flow/deployment`.
    up, down
        How many levels to show on each way; a level is one flow.
    """
    node = find_node(reader, what)
    graph = _with_states_now(reader, graph_of(reader, Wanted(node, up, down, hubs=False)))
    tell(graph, *_lines(graph, datetime.now(UTC)), json=json)


def _with_states_now(reader: Reader, graph: Graph) -> Graph:
    """Return the graph in which the flows that run have the states of their newest runs in Prefect."""
    flows = {box.value for box in graph.nodes if box.kind == "flow" and box.state == "running"}
    runs = {each.consumer_name: each for each in reader.decisions.running(limit=None) if each.consumer_name in flows}
    states = states_now(list(runs.values()))
    known = {flow: state.lower() for flow, made in runs.items() if (state := states.get(made.flow_run_id))}
    nodes = [
        replace(box, state=known[box.value]) if box.kind == "flow" and box.value in known else box
        for box in graph.nodes
    ]
    return replace(graph, nodes=nodes)


def _lines(graph: Graph, now: datetime) -> Iterator[Text]:
    yield from (_one(each, now) for each in graph.nodes if each.id == graph.focus)
    ways: tuple[tuple[str, Way], ...] = (("Upstream", "up"), ("Downstream", "down"))
    for title, way in ways:
        found = list(graph.way(way))
        if found:
            yield Text(f"{title}: {count(sum(box.flows for box, _ in found), 'flow')}", "bold")
            yield from (Text.assemble("  " * depth, _one(box, now)) for box, depth in found)
    if graph.truncated:
        yield Text(f"Only the nearest {len(graph.nodes)} are shown.", "dim")


def _one(box: Placed, now: datetime) -> Text:
    when = "" if box.at is None else f" {ago(box.at, now)}"
    kind = "" if box.kind == "asset" else f" ({box.kind})"
    sign, style = mark(box.state)
    return Text.assemble((sign, style), text(f"{box.name}{kind}"), "  ", text(box.state, style), (when, "dim"))


@watchable
@reads
def trace(reader: Reader, what: str, /, *, wide: Wide = False, json: AsJson = False) -> None:
    """Show what triggered what: the runs that an update led to, what these updated, and so on.

    Parameters
    ----------
    what
        An asset by its URI or name, for its newest update; an event by its id or number; or a run by its id or that of
        its decision.
    """
    found = trace_of(reader, what, datetime.now(UTC))
    lines = [_trace_line(branches, line) for branches, line in drawn(found)]
    notes = [text(f"{count(found.left_out, 'more line')}")] if found.left_out else []
    notes += [text("It goes on further than it was followed.")] if found.is_cut else []
    tell(found, text(f"{at(found.at)}  {found.words}"), *lines, *notes, json=json, wide=wide)


def _trace_line(branches: str, line: TraceLine) -> Text:
    words = text(line_words(line), "red" if line.has_failed else "bold" if line.kind == "update" else "")
    return Text.assemble((branches, "dim"), words)
