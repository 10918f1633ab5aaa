"""The summary of a stack: its events, decisions and runs, compared with what the contract says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import singledispatch
from operator import itemgetter
from typing import cast
from uuid import UUID

from assetflow.core.explain.trace import Trace
from assetflow.core.freshness import deploying as freshness
from assetflow.core.freshness.records import RunState
from assetflow.core.rules import registry
from assetflow.core.rules.fold import Touched, pass_over, record_and_pass
from assetflow.core.rules.keeping import end_kept_run, keep_up_to_date, start_kept_run
from assetflow.core.rules.state import State
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
        "decision": _id(run.decision),
    }


def _id(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
