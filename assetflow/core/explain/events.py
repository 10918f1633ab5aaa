"""Explain an event: where it came from, and each of its receipts in words (contract 3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assetflow.core.explain.facts import DecisionFacts
from assetflow.core.values.consumers import Receipt
from assetflow.core.values.events import AssetEvent, Origin, SourceFlowRun
from assetflow.core.values.redaction import redacted
from assetflow.core.values.words import at, iso


@dataclass(frozen=True)
class EventSummary:
    """The fields of an event that a list shows; `source` says who made it."""

    id: str
    uri: str
    name: str
    partition_key: str | None
    sequence: int | None
    occurred: datetime
    recorded: datetime | None
    source: str

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "uri": self.uri,
            "name": self.name,
            "partition_key": self.partition_key,
            "sequence": self.sequence,
            "occurred": iso(self.occurred),
            "recorded": iso(self.recorded),
            "source": self.source,
        }


@dataclass(frozen=True)
class ReceiptExplanation:
    """A receipt in words: what became of an event for one consumer and target key.

    Attributes:
        words: the outcome, with the consumer, the key and the run.
        short: the outcome without them, for a table that has columns for them.
        decision: the decision that consumed the event, if it was read.
    """

    receipt: Receipt
    consumer: str
    words: str
    short: str
    decision: DecisionFacts | None = None

    def as_json(self) -> dict[str, object]:
        receipt, made = self.receipt, self.decision
        run = None if made is None else made.run.flow_run_id
        return {
            "consumer": self.consumer or None,
            "target_key": receipt.target_key,
            "status": receipt.status,
            "words": self.words,
            "decision_id": None if receipt.decision is None else str(receipt.decision),
            "flow_run_id": None if run is None else str(run),
            "by": receipt.by or None,
            "why": receipt.why or None,
            "error": receipt.error or None,
        }


@dataclass(frozen=True)
class EventExplanation:
    """The explanation of one event: its origin and its receipts.

    Attributes:
        receipts: its receipts, or one page of them.
        total: the number of all its receipts.
    """

    event: AssetEvent
    words: str
    receipts: tuple[ReceiptExplanation, ...]
    total: int

    def as_json(self) -> dict[str, object]:
        return {
            "event": event_as_json(self.event),
            "words": self.words,
            "total_receipts": self.total,
            "receipts": [receipt.as_json() for receipt in self.receipts],
        }


def explain_event(
    event: AssetEvent,
    receipts: Sequence[Receipt],
    consumers: Mapping[int, str],
    decisions: Sequence[DecisionFacts] = (),
    *,
    total: int | None = None,
) -> EventExplanation:
    """Explain where an event came from and what became of it.

    Parameters:
        receipts: the event's receipts, or one page of them.
        consumers: id to `flow/deployment`, also of removed consumers.
        decisions: the decisions that consumed the event. If one is missing, its receipt says less.
        total: the number of all receipts of the event; `None` if `receipts` has all of them.
    """
    made = {facts.decision.id: facts for facts in decisions}
    told = tuple(
        _explain(event, receipt, consumers, None if receipt.decision is None else made.get(receipt.decision))
        for receipt in receipts
    )
    key = "" if event.partition_key is None else f", partition {event.partition_key}"
    words = f"{event.uri}{key} was updated at {at(event.occurred)} by {source_of(event.origin)}"
    if event.recorded is not None:
        words += f", and recorded at {at(event.recorded)} as number {event.sequence}"
    return EventExplanation(event, f"{words}.", told, len(told) if total is None else total)


def summary_of(event: AssetEvent) -> EventSummary:
    """Return the fields of an event that a list shows."""
    return EventSummary(
        id=str(event.id),
        uri=event.uri,
        name=event.asset.name,
        partition_key=event.partition_key,
        sequence=event.sequence,
        occurred=event.occurred,
        recorded=event.recorded,
        source=source_of(event.origin),
    )


def event_as_json(event: AssetEvent) -> dict[str, object]:
    """Return an event as the API and `--json` show it: with all fields, without the values that look like secrets."""
    event = redacted(event)
    return {
        "id": str(event.id),
        "sequence": event.sequence,
        "uri": event.uri,
        "name": event.asset.name,
        "group": event.asset.group or None,
        "asset_extra": dict(event.asset.extra),
        "extra": dict(event.extra),
        "partition_key": event.partition_key,
        "aliases": list(event.aliases),
        "metrics": dict(event.metrics),
        "code_version": event.code_version,
        "data_version": event.data_version,
        "inputs": dict(event.inputs),
        "read": {uri: {"event_id": str(pin.event), "recorded": iso(pin.recorded)} for uri, pin in event.read.items()},
        "occurred": iso(event.occurred),
        "recorded": iso(event.recorded),
        "origin": _origin_as_json(event.origin),
    }


def _origin_as_json(origin: Origin) -> dict[str, object]:
    task, run = origin.task_run, origin.flow_run
    return {
        "kind": origin.kind,
        "by": origin.by or None,
        "task_run": None if task is None else {"id": str(task.id), "name": task.name or None},
        "flow_run": None if run is None else _flow_run_as_json(run),
        "traceparent": origin.traceparent or None,
    }


def _flow_run_as_json(run: SourceFlowRun) -> dict[str, object]:
    return {
        "id": str(run.id),
        "name": run.name or None,
        "flow_id": None if run.flow_id is None else str(run.flow_id),
        "flow_name": run.flow_name or None,
        "deployment_id": None if run.deployment_id is None else str(run.deployment_id),
        "deployment_name": run.deployment_name or None,
        "parameters": None if run.parameters is None else dict(run.parameters),
        "scheduled_time": iso(run.scheduled_time),
        "data_interval_start": iso(run.data_interval_start),
        "data_interval_end": iso(run.data_interval_end),
    }


_PLACES = {
    "api": "the API",
    "cli": "the command line",
    "prefect": "an event posted to Prefect",
    "watcher": "a watcher",
    "task": "a task",
}


def source_of(origin: Origin) -> str:
    """Return who made an event: `task load of flow run calm-fox (ingest/nightly)`, `the command line`."""
    task, run = origin.task_run, origin.flow_run
    if origin.kind == "watcher" and origin.by:
        return origin.by
    if task is None and run is None:
        return _PLACES[origin.kind] + (f" ({origin.by})" if origin.by else "")
    parts = [] if task is None else [f"task {task.name or task.id}"]
    if run is not None:
        deployment = "/".join(name for name in (run.flow_name, run.deployment_name) if name)
        parts.append(f"flow run {run.name or run.id}" + (f" ({deployment})" if deployment else ""))
    return " of ".join(parts)


def _explain(
    event: AssetEvent, receipt: Receipt, consumers: Mapping[int, str], decision: DecisionFacts | None
) -> ReceiptExplanation:
    number = receipt.consumer
    consumer = "" if number is None else consumers.get(number, f"consumer {number}")
    words = _words(event, receipt, consumer, decision)
    return ReceiptExplanation(receipt, consumer, words, _short(event, receipt, decision), decision)


def _words(event: AssetEvent, receipt: Receipt, consumer: str, decision: DecisionFacts | None) -> str:
    key = "" if receipt.target_key is None else f" for the partition {receipt.target_key}"
    match receipt.status:
        case "queued":
            return f"waits in the queue of {consumer}{key}"
        case "consumed":
            return _consumed(receipt, consumer, key, decision)
        case "dropped":
            return f"dropped: {consumer} was paused, and takes nothing meanwhile (while_paused='drop')"
        case "removed":
            return f"removed from the queue of {consumer}{key} by {receipt.by or 'someone'}" + (
                f": {receipt.why}" if receipt.why else ""
            )
        case "not_for_consumer":
            return f"not for {consumer}, which takes {_taken(event)} a partition key"
        case "not_mapped":
            return f"not queued for {consumer}, whose mapper could not use the key: {receipt.error}"
        case "superseded":
            return f"taken from the queue of {consumer}{key} when its schedule changed or its deployment went"
        case "no_consumer":
            return "no consumer wanted it"
        case "expired":
            return f"expired for {consumer}{key}{_when(receipt)}: nothing that its condition needs came in time"
        case "skipped":
            return f"skipped for {consumer}{key}{_when(receipt)}: its deadline passed (on_deadline='skip')"
        case "compared":
            return f"compared by {consumer} with what its outputs were made from"


def _when(receipt: Receipt) -> str:
    return "" if receipt.at is None else f" at {at(receipt.at)}"


def _short(event: AssetEvent, receipt: Receipt, decision: DecisionFacts | None) -> str:
    match receipt.status:
        case "queued":
            return "waits in the queue"
        case "consumed" if decision is not None and decision.run.undeliverable:
            return f"consumed by a decision that could not be delivered: {decision.run.error}"
        case "consumed":
            return "consumed by" if decision is not None and decision.run.flow_run_id else "consumed, run not started"
        case "dropped":
            return "dropped while the consumer was paused (while_paused='drop')"
        case "removed":
            return f"removed from the queue by {receipt.by or 'someone'}" + (f": {receipt.why}" if receipt.why else "")
        case "not_for_consumer":
            return f"the consumer takes {_taken(event)} a partition key"
        case "not_mapped":
            return f"the mapper could not use the key: {receipt.error}"
        case "superseded":
            return "taken from the queue when the schedule changed or the deployment went"
        case "no_consumer":
            return "no consumer wanted it"
        case "expired":
            return f"expired{_when(receipt)}: nothing that the condition needs came in time"
        case "skipped":
            return f"skipped{_when(receipt)}: the deadline passed (on_deadline='skip')"
        case "compared":
            return "compared with what the outputs were made from"


def _taken(event: AssetEvent) -> str:
    return "only updates with" if event.partition_key is None else "no updates with"


def _consumed(receipt: Receipt, consumer: str, key: str, decision: DecisionFacts | None) -> str:
    words = f"consumed by {consumer}{key} with decision {receipt.decision}"
    if decision is None:
        return words
    words += f" at {at(decision.decision.made)}"
    run = decision.run
    if run.undeliverable:
        return f"{words}, which could not be delivered: {run.error}"
    return f"{words}, flow run {run.flow_run_id}" if run.flow_run_id else f"{words}, whose run is not started yet"
