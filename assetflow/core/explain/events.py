"""Explain an event: where it came from, and each of its receipts in words (contract 3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Annotated, Any, cast
from uuid import UUID

from assetflow.core.explain.facts import DecisionFacts
from assetflow.core.shapes import HIDDEN, As, TextOrNull, shape
from assetflow.core.values.addresses import redacted
from assetflow.core.values.consumers import Receipt, ReceiptStatus
from assetflow.core.values.events import AssetEvent, CheckResult, Origin
from assetflow.core.values.words import at


@shape
class EventSummary:
    """The fields of an event that a list shows."""

    id: UUID
    uri: str
    name: str
    partition_key: str | None
    sequence: int | None
    occurred: datetime
    recorded: datetime | None
    source: str
    """Who made it, in words."""


@shape
class ShownPin:
    """The event that was read of an input."""

    event_id: UUID
    recorded: datetime


@shape
class ShownEvent:
    """An event in the ledger."""

    id: UUID
    sequence: int
    uri: str
    name: str
    """The asset's readable name; its URI if it has none."""
    group: TextOrNull
    asset_extra: Mapping[str, Any]
    extra: Mapping[str, Any]
    partition_key: str | None
    aliases: Sequence[str]
    metrics: Mapping[str, Any]
    code_version: str | None
    data_version: str | None
    inputs: Mapping[str, int]
    """Each input, with the sequence up to which it was read."""
    read: Mapping[str, ShownPin]
    """Each input, with the newest event that was read."""
    checks: Sequence[CheckResult]
    """What the checks of its data found."""
    occurred: datetime
    recorded: datetime
    origin: Origin


def shown_event(event: AssetEvent) -> ShownEvent:
    """Return a recorded event as the API and `--json` show it: without the values that look like secrets."""
    event = redacted(event)
    return ShownEvent(
        id=event.id,
        sequence=cast("int", event.sequence),
        uri=event.uri,
        name=event.asset.name,
        group=event.asset.group,
        asset_extra=event.asset.extra,
        extra=event.extra,
        partition_key=event.partition_key,
        aliases=event.aliases,
        metrics=event.metrics,
        code_version=event.code_version,
        data_version=event.data_version,
        inputs=event.inputs,
        read={uri: ShownPin(pin.event, pin.recorded) for uri, pin in event.read.items()},
        checks=event.checks,
        occurred=event.occurred,
        recorded=cast("datetime", event.recorded),
        origin=event.origin,
    )


@shape
class ReceiptExplanation:
    """The outcome of an event for one consumer and target key."""

    consumer: TextOrNull
    target_key: str | None
    status: ReceiptStatus
    words: str
    """The outcome, with the consumer, the key and the run."""
    decision_id: UUID | None
    flow_run_id: UUID | None
    by: TextOrNull
    why: TextOrNull
    error: TextOrNull
    receipt: Receipt = field(metadata=HIDDEN)
    short: str = field(metadata=HIDDEN)
    """The outcome without consumer, key and run, for a table that has columns for them."""
    decision: DecisionFacts | None = field(metadata=HIDDEN)
    """The decision that consumed the event, if it was read."""


@shape
class EventExplanation:
    """The explanation of one event: its origin and its receipts."""

    event: Annotated[AssetEvent, As(ShownEvent, shown_event)]
    words: str
    total_receipts: int
    receipts: Sequence[ReceiptExplanation]
    """Its receipts, or one page of them."""


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
    words = f"{event.asset.name}{key} was updated at {at(event.occurred)} by {source_of(event.origin)}"
    if event.recorded is not None:
        words += f", and recorded at {at(event.recorded)} as number {event.sequence}"
    return EventExplanation(event, f"{words}.", len(told) if total is None else total, told)


def summary_of(event: AssetEvent) -> EventSummary:
    """Return the fields of an event that a list shows."""
    return EventSummary(
        id=event.id,
        uri=event.uri,
        name=event.asset.name,
        partition_key=event.partition_key,
        sequence=event.sequence,
        occurred=event.occurred,
        recorded=event.recorded,
        source=source_of(event.origin),
    )


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
        deployment = _deployment(origin)
        parts.append(f"flow run {run.name or run.id}" + (f" ({deployment})" if deployment else ""))
    return " of ".join(parts)


def maker_of(origin: Origin) -> str:
    """Return who made an event in short: the deployment of its flow run, else what `source_of` says."""
    return _deployment(origin) or source_of(origin)


def _deployment(origin: Origin) -> str:
    run = origin.flow_run
    return "" if run is None else "/".join(name for name in (run.flow_name, run.deployment_name) if name)


# The outcome of an event for a consumer, and the same in short, for a table that has columns for consumer, key and run.
_WORDS: Mapping[ReceiptStatus, tuple[str, str]] = {
    "queued": ("waits in the queue of {consumer}{key}", "waits in the queue"),
    "dropped": (
        "dropped: {consumer} was paused, and takes nothing meanwhile (while_paused='drop')",
        "dropped while the consumer was paused (while_paused='drop')",
    ),
    "removed": ("removed from the queue of {consumer}{key} by {by}{why}", "removed from the queue by {by}{why}"),
    "not_for_consumer": (
        "not for {consumer}, which takes {taken} a partition key",
        "the consumer takes {taken} a partition key",
    ),
    "not_mapped": (
        "not queued for {consumer}, whose mapper could not use the key: {error}",
        "the mapper could not use the key: {error}",
    ),
    "superseded": (
        "taken from the queue of {consumer}{key} when its schedule changed or its deployment went",
        "taken from the queue when the schedule changed or the deployment went",
    ),
    "no_consumer": ("no consumer wanted it", "no consumer wanted it"),
    "expired": (
        "expired for {consumer}{key}{when}: nothing that its condition needs came in time",
        "expired{when}: nothing that the condition needs came in time",
    ),
    "skipped": (
        "skipped for {consumer}{key}{when}: its deadline passed (on_deadline='skip')",
        "skipped{when}: the deadline passed (on_deadline='skip')",
    ),
    "compared": (
        "checked by {consumer}: it runs when its outputs are out of date",
        "checked: it runs when its outputs are out of date",
    ),
}


def _explain(
    event: AssetEvent, receipt: Receipt, consumers: Mapping[int, str], decision: DecisionFacts | None
) -> ReceiptExplanation:
    number = receipt.consumer
    consumer = "" if number is None else consumers.get(number, f"consumer {number}")
    key = "" if receipt.target_key is None else f" for the partition {receipt.target_key}"
    if receipt.status == "consumed":
        words, short = _consumed(receipt, consumer, key, decision), _consumed_by(decision)
    else:
        told = {
            "consumer": consumer,
            "key": key,
            "by": receipt.by or "someone",
            "why": f": {receipt.why}" if receipt.why else "",
            "error": receipt.error,
            "taken": "only updates with" if event.partition_key is None else "no updates with",
            "when": "" if receipt.at is None else f" at {at(receipt.at)}",
        }
        words, short = (text.format_map(told) for text in _WORDS[receipt.status])
    return ReceiptExplanation(
        consumer=consumer,
        target_key=receipt.target_key,
        status=receipt.status,
        words=words,
        decision_id=receipt.decision,
        flow_run_id=None if decision is None else decision.run.flow_run_id,
        by=receipt.by,
        why=receipt.why,
        error=receipt.error,
        receipt=receipt,
        short=short,
        decision=decision,
    )


def _consumed_by(decision: DecisionFacts | None) -> str:
    if decision is not None and decision.run.undeliverable:
        return f"consumed by a decision that could not be delivered: {decision.run.error}"
    return "consumed by" if decision is not None and decision.run.flow_run_id else "consumed, run not started"


def _consumed(receipt: Receipt, consumer: str, key: str, decision: DecisionFacts | None) -> str:
    words = f"consumed by {consumer}{key} with decision {receipt.decision}"
    if decision is None:
        return words
    words += f" at {at(decision.decision.made)}"
    run = decision.run
    if run.undeliverable:
        return f"{words}, which could not be delivered: {run.error}"
    return f"{words}, flow run {run.flow_run_id}" if run.flow_run_id else f"{words}, whose run is not started yet"
