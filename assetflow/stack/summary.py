"""The summary of a stack: its events, decisions and runs, compared with what the contract says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord
from assetflow.stack.calls import FlowRun, runs_of
from assetflow.stack.folding import DeployedConsumer, fold_again

Json = dict[str, object]


@dataclass(frozen=True)
class Story:
    """The events, decisions and runs of a stack, from the ledger and from Prefect.

    Attributes:
        events: the events, ordered by sequence.
        decisions: the decisions, ordered by number, each with the events that it consumed.
        expected: the decisions that the rules make from the recorded events, in ledger order.
    """

    consumers: dict[int, Consumer]
    events: list[AssetEvent]
    decisions: list[tuple[DecisionRecord, tuple[AssetEvent, ...]]]
    expected: list[Decision]
    runs: list[FlowRun]

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
