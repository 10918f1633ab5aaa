"""The summary of a stack, compared with what the contract says, and how a terminal shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import singledispatch
from operator import itemgetter
from typing import cast
from uuid import UUID

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from assetflow.core.explain.trace import Trace, drawn, line_words
from assetflow.core.freshness import deploying as freshness
from assetflow.core.freshness.records import RunState
from assetflow.core.rules import registry
from assetflow.core.rules.fold import Touched, pass_over, record_and_pass
from assetflow.core.rules.keeping import end_kept_run, keep_up_to_date, start_kept_run
from assetflow.core.rules.state import State
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.core.wire import declaration_from_text
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord, DecisionRecord
from assetflow.operations.graph import newest_traces
from assetflow.stack.calls import FlowRun, runs_of


@dataclass(frozen=True)
class DeployedConsumer:
    """A consumer as it was deployed or changed at some time."""

    at: datetime
    consumer: Consumer


@dataclass(frozen=True)
class Ended:
    """The end of the run of a decision, of which the ledger heard at some time."""

    at: datetime
    decision: DecisionRecord
    run: FlowRun


MOST_TREES = 50
Fact = DeployedConsumer | Recording | Ended


def deployed_now(reader: Reader, before: Sequence[DeployedConsumer] = ()) -> list[DeployedConsumer]:
    """Return the consumers whose declarations differ from those that were deployed before."""
    known = {each.consumer.id: each.consumer.options for each in before}
    found = (_declared(record) for record in reader.consumers.all())
    return [each for each in found if known.get(each.consumer.id) != each.consumer.options]


def fold_again(reader: Reader, deployed: Sequence[DeployedConsumer], runs: Sequence[FlowRun]) -> list[Decision]:
    """Return the decisions that the rules make from what has happened, in that order.

    Parameters:
        deployed: what was deployed, in order.
        runs: the flow runs, as Prefect has them.
    """
    state = State()
    facts: list[tuple[datetime, Fact]] = [(each.at, each) for each in (*deployed, *_ends(reader, runs))]
    facts += _in_ledger_order(reader.events.recordings())
    return [decision for _, fact in sorted(facts, key=itemgetter(0)) for decision in _fold(fact, state)]


def _declared(record: ConsumerRecord) -> DeployedConsumer:
    """Return a consumer with the options of its declaration, neither paused nor held."""
    of = record.consumer
    options = declaration_from_text(record.declaration, where=of.name).options
    at = of.deployed or record.since
    assert at is not None, "a consumer was deployed"
    return DeployedConsumer(at, Consumer(of.id, of.name, of.deployment_id, options))


def _ends(reader: Reader, runs: Sequence[FlowRun]) -> Iterator[Ended]:
    for record in reader.decisions.find(limit=1_000_000):
        if record.ended is not None:
            for run in runs_of(runs, record.id):
                yield Ended(record.ended, record, run)


def _in_ledger_order(recordings: Iterable[Recording]) -> Iterator[tuple[datetime, Recording]]:
    """Yield recordings with instants that keep their order: the ledger may have heard of an earlier one later."""
    latest = datetime.min.replace(tzinfo=UTC)
    for each in recordings:
        latest = max(latest, _recorded(each))
        yield latest, each


def _recorded(recording: Recording) -> datetime:
    first = recording.events[0]
    return first.recorded or first.occurred


@singledispatch
def _fold(fact: object, state: State) -> Iterable[Decision]:
    """Fold a fact into the state, and return the decisions of the passes that follow it."""
    raise NotImplementedError(f"{fact!r} cannot be folded; state: {state!r}")


@_fold.register
def _(fact: DeployedConsumer, state: State) -> Iterable[Decision]:
    before = state.consumers.find(fact.consumer.id)
    consumer = replace(fact.consumer, deployed=fact.at)
    if before is None:
        registry.deploy(state, consumer)
    else:
        consumer = registry.change(state, replace(before, deployed=fact.at), consumer.options)
    freshness.follow(state.freshness, before, consumer, fact.at)
    decided = registry.pass_over_consumer(state, consumer, fact.at)
    return keep_up_to_date(state, decided, fact.at)


@_fold.register
def _(fact: Recording, state: State) -> Iterable[Decision]:
    now = _recorded(fact)
    return keep_up_to_date(state, record_and_pass(state, fact, now)[1], now)


@_fold.register
def _(fact: Ended, state: State) -> Iterable[Decision]:
    record, run = fact.decision, fact.run
    if run.started is not None:
        start_kept_run(state, record.consumer, record.id, run.started, fact.at)
    outcome = cast(RunState, run.state_type.lower())
    end_kept_run(state, record.consumer, record.id, outcome, min(run.ended or fact.at, fact.at))
    touched: Touched = {}
    registry.touch_ended(state, record.consumer, [record.target_key], touched)
    return keep_up_to_date(state, pass_over(state, touched, fact.at), fact.at)


Json = dict[str, object]


@dataclass(frozen=True)
class Story:
    """The events, decisions and runs of a stack, from the ledger and from Prefect.

    Attributes:
        events: the events, ordered by sequence.
        decisions: the decisions, ordered by number, each with the events that it consumed.
        expected: the decisions that the rules make from the recorded events, in ledger order.
        traces: what triggered what, the newest tree first.
    """

    consumers: dict[int, Consumer]
    events: list[AssetEvent]
    decisions: list[tuple[DecisionRecord, tuple[AssetEvent, ...]]]
    expected: list[Decision]
    runs: list[FlowRun]
    traces: Sequence[Trace] = ()

    @classmethod
    def read(cls, reader: Reader, runs: list[FlowRun], deployed: Sequence[DeployedConsumer]) -> Story:
        """Read the story from a ledger.

        Parameters:
            deployed: what was deployed, in order.
        """
        records = sorted(reader.decisions.find(limit=1_000_000), key=lambda record: record.number)
        consumed = reader.decisions.events_of(records)
        return cls(
            consumers={each.consumer.id: each.consumer for each in deployed},
            events=reader.events.find(),
            decisions=[(record, consumed[record.id]) for record in records],
            expected=fold_again(reader, deployed, runs),
            runs=runs,
            traces=newest_traces(reader, MOST_TREES, datetime.now(UTC)),
        )

    def as_json(self) -> Json:
        """Return the summary: `ok`, and the facts behind it."""
        consumers = [self._consumer(consumer) for consumer in self.consumers.values()]
        return {
            "ok": all(bool(consumer["ok"]) for consumer in consumers),
            "consumers": consumers,
            "events": [_event(event) for event in self.events],
            "decisions": [self._decision(record, events) for record, events in self.decisions],
            "runs": [_run(run) for run in self.runs],
        }

    def _consumer(self, consumer: Consumer) -> Json:
        expected = [decision.id for decision in self.expected if decision.consumer == consumer.id]
        made = [record.id for record, _ in self.decisions if record.consumer == consumer.id]
        runs = [run for number in made for run in runs_of(self.runs, number)]
        once = Counter(run.decision for run in runs)
        return {
            "consumer": consumer.name,
            "condition": consumer.options.describe(),
            "expected": len(expected),
            "decisions": len(made),
            "runs": len(runs),
            "completed": sum(run.state_type == "COMPLETED" for run in runs),
            "ok": made == expected
            and all(once[number] == 1 for number in made)
            and all(run.state_type == "COMPLETED" for run in runs),
        }

    def _decision(self, record: DecisionRecord, events: tuple[AssetEvent, ...]) -> Json:
        runs = runs_of(self.runs, record.id)
        return {
            "decision": str(record.id),
            "consumer": record.consumer_name,
            "partition_key": record.target_key,
            "made": _text(record.made),
            "status": record.status,
            "events": [event.sequence for event in events],
            "flow_run": _run(runs[0]) if runs else None,
        }


def _event(event: AssetEvent) -> Json:
    run = event.source_flow_run
    return {
        "sequence": event.sequence,
        "id": str(event.id),
        "asset": event.asset.name,
        "uri": event.uri,
        "occurred": _text(event.occurred),
        "recorded": _text(event.recorded),
        "extra": dict(event.extra),
        "metrics": dict(event.metrics),
        "partition_key": event.partition_key,
        "origin": event.origin.kind,
        "flow": run.flow_name if run else None,
        "flow_run": str(run.id) if run else None,
    }


def _run(run: FlowRun) -> Json:
    return {
        "id": str(run.id),
        "name": run.name,
        "state": run.state,
        "created": _text(run.created),
        "started": _text(run.started),
        "ended": _text(run.ended),
        "decision": None if run.decision is None else str(run.decision),
    }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def show(story: Story, summary: Json) -> RenderableType:
    """Return all tables and the tree, one below the other."""
    ends: list[RenderableType] = [_consumers(summary), _held_back(summary), _results(summary)]
    return Group(_table(story), Text(), _trees(story), *(each for end in ends for each in (Text(), end)))


def _table(story: Story) -> Table:
    """Return a table with a row for each event and each decision that it completed, with the run that followed.

    A run's events for many partitions share a row if they completed nothing.
    """
    table = Table(title="Asset events → decisions → flow runs", box=SIMPLE_HEAD, title_justify="left")
    for column in ("event", "recorded", "decision: run of", "with", "started"):
        table.add_column(column, no_wrap=column in ("recorded", "started"), overflow="fold")
    by_last = _completed_by(story)
    for group in _groups(story.events, by_last):
        event = group[-1]
        first = [f"{_numbers(group)} {event.asset.name}", _clock(event.recorded)]
        decisions = by_last.get(event.id, [])
        if not decisions:
            table.add_row(*map(escape, first))
        for consumer, events, run in decisions:
            table.add_row(*map(escape, [*first, consumer, _numbers(events), _clock(run.started) if run else "no run"]))
            first = [""] * len(first)
    return table


def _trees(story: Story) -> Group:
    """Return what triggered what: each tree that began with an update or a run which nothing led to."""
    lines = (each for told in reversed(story.traces) for each in drawn(told))
    trees = (Text(branches + line_words(line), "red" if line.has_failed else "") for branches, line in lines)
    return Group(Text("What triggered what", style="bold"), *trees)


def _consumers(summary: Json) -> Table:
    table = Table(title="Expected and actual runs", title_justify="left", box=SIMPLE_HEAD)
    for column in ("consumer", "runs when updated", "expected", "decisions", "runs", ""):
        justify = "right" if column in ("expected", "decisions", "runs") else "left"
        table.add_column(column, justify=justify, overflow="fold")
    for entry in _entries(summary["consumers"]):
        values = (str(entry[key]) for key in ("consumer", "condition", "expected", "decisions", "runs"))
        table.add_row(*map(escape, values), _mark(entry["ok"]))
    return table


def _held_back(summary: Json) -> Group:
    """Return what checks have held back."""
    lines = (Text(line, "yellow") for line in cast("list[str]", summary["held_back"]))
    return Group(Text("Held back by checks: nobody has seen this data", style="bold"), *lines)


def _results(summary: Json) -> Table:
    table = Table(
        title="Are the numbers right? (source files counted again without Spark)",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for column in ("check", "expected", "found", ""):
        table.add_column(column, overflow="fold")
    results = cast(Json, summary["results"])
    for entry in _entries(results["checks"]):
        table.add_row(*(escape(_plain(entry[key])) for key in ("check", "expected", "found")), _mark(entry["ok"]))
    return table


def _plain(value: object) -> str:
    """Return a number or a row of them as people write them: `2013-01, 3, 2,772`."""
    if isinstance(value, list):
        return ", ".join(map(_plain, cast("list[object]", value)))
    if isinstance(value, float) and value.is_integer():
        return _plain(int(value))
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _completed_by(story: Story) -> dict[UUID, list[tuple[str, tuple[AssetEvent, ...], FlowRun | None]]]:
    """Return, for the last event that each decision consumed or follows, those decisions with their runs."""
    found: dict[UUID, list[tuple[str, tuple[AssetEvent, ...], FlowRun | None]]] = {}
    for record, events in story.decisions:
        events = events or _followed(story, record)
        if not events:
            continue
        runs = runs_of(story.runs, record.id)
        found.setdefault(events[-1].id, []).append((record.consumer_name, events, runs[0] if runs else None))
    return found


def _followed(story: Story, record: DecisionRecord) -> tuple[AssetEvent, ...]:
    """Return the newest update that an Eager or Lazy flow reads, before its decision; nothing if new code led to it."""
    consumer = story.consumers.get(record.consumer)
    if consumer is None or all(cause.kind == "code" for cause in record.because):
        return ()
    tokens = consumer.options.input_tokens
    before = (each for each in story.events if each.recorded is not None and each.recorded <= record.made)
    read = [each for each in before if tokens & {Token("uri", each.uri), Token("name", each.asset.name)}]
    return tuple(read[-1:])


def _groups(events: Sequence[AssetEvent], by_last: Mapping[UUID, object]) -> list[list[AssetEvent]]:
    """Group the events of one run's partitions, each group up to the event that completed something."""
    groups: list[list[AssetEvent]] = []
    for event in events:
        last = groups[-1][-1] if groups else None
        if last is None or last.id in by_last or last.partition_key is None or not _same_origin(last, event):
            groups.append([])
        groups[-1].append(event)
    return groups


def _same_origin(one: AssetEvent, other: AssetEvent) -> bool:
    runs = [event.source_flow_run.id if event.source_flow_run else None for event in (one, other)]
    return one.uri == other.uri and runs[0] == runs[1]


def _numbers(events: Sequence[AssetEvent]) -> str:
    """Return the sequences of events, as in `#1 #3–#7`."""
    ranges: list[list[int]] = []
    for number in (event.sequence or 0 for event in events):
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return " ".join("–".join(f"#{number}" for number in each) for each in ranges)


def _entries(value: object) -> list[Json]:
    return cast("list[Json]", value)


def _clock(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%H:%M:%S") if moment else ""


def _mark(ok: object) -> Text:
    return Text("yes", style="green") if ok else Text("NO", style="bold red")
