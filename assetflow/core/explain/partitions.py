"""Explain a pending partition: what has come for a target key, and what is missing (contract chapter 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime

from assetflow.core.explain.conditions import ConditionRow, condition_rows
from assetflow.core.explain.decisions import DecisionExplanation
from assetflow.core.explain.events import EventSummary, summary_of
from assetflow.core.explain.facts import KnownNames, QueuedEvents, RunFacts
from assetflow.core.explain.plan import PlannedTarget
from assetflow.core.rules.ended_runs import Failing
from assetflow.core.shapes import called, shape
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.words import at, count


@shape
class PartitionExplanation:
    """A pending partition."""

    target_key: str
    holds: bool
    """Its condition holds."""
    since: datetime | None
    """When its first event was recorded, UTC."""
    words: str
    queued: int = 0
    """How many events are queued."""
    received: tuple[str, ...] = ()
    """The upstream keys that have come, of all leaves."""
    missing: tuple[str, ...] = ()
    """The upstream keys for which rolled-up leaves wait, of all leaves."""
    condition: tuple[ConditionRow, ...] = ()
    """The rows of its condition, each rolled-up leaf with its received and missing keys."""
    events: tuple[EventSummary, ...] = ()
    """The events queued for the key, oldest first."""
    last: DecisionExplanation | None = field(default=None, metadata=called("last_decision"))
    """Its latest decision. If nothing is queued, `received` and `condition` tell what that consumed."""
    plan: PlannedTarget | None = None
    """Of an Eager consumer: what it would run for the key now, and what holds it back; null if it is up to date."""
    notes: Sequence[str] = ()
    """Which makers of what it may wait for have failed, in words."""
    failing: Sequence[Failing] = ()
    """Its failed run, if nothing has made it good (4.9)."""


def explain_partition(
    schedule: Schedule,
    queue: QueuedEvents,
    names: KnownNames,
    waiting_since: datetime | None = None,
    last: DecisionExplanation | None = None,
    plan: PlannedTarget | None = None,
) -> PartitionExplanation:
    """Explain what a pending partition has and what it waits for, or what its last run did with what has come.

    Parameters:
        queue: the events queued for the target key.
        names: the names and links that the schedule needs.
        waiting_since: since when it waits; `None` for the time of its first event.
        last: the last decision for the key; `None` if there was none.
        plan: what an Eager consumer would run for it now.
    """
    key = queue.target_key or ""
    if not queue.events and (last is not None or schedule.keeping is not None):
        return _decided(schedule, key, names, last, plan)
    first = queue.events[0].recorded if queue.events else None
    rows = condition_rows(schedule, queue, names, waiting_since or first)
    holds = bool(queue.events) and bool(rows) and rows[0].state == "satisfied"
    started = "" if first is None else f", the first at {at(first)}"
    have = f"{count(queue.count, 'event')} queued{started}" if queue.events else "nothing queued"
    words = f"Partition {key}: {have}; its condition {'holds' if holds else 'does not hold yet'}."
    if queue.waiting is not None and queue.waiting.words:
        words = f"{words} {queue.waiting.words}"
    missing = dict.fromkeys(key for row in rows for key in row.missing)
    events = tuple(summary_of(event) for event in queue.events)
    return PartitionExplanation(
        *(key, holds, first, words, queue.count, _keys_of(queue.events), tuple(missing), rows, events), last
    )


def _decided(
    schedule: Schedule, key: str, names: KnownNames, last: DecisionExplanation | None, plan: PlannedTarget | None
) -> PartitionExplanation:
    """Explain a partition for which nothing is queued: what its last run consumed, or read, and what became of it."""
    then = "" if plan is None else f" {plan.words}."
    if last is None:
        return PartitionExplanation(key, False, None, f"Partition {key} has not run yet.{then}", plan=plan)
    run, events, rows = last.facts.run, last.decision.events, tuple[ConditionRow, ...]()
    words = f"Partition {key} {_became(run)}."
    if events:
        keys = _keys_of(events)
        of_keys = f" with {count(len(keys), 'key')}" if len(keys) > 1 else ""
        words += f" Its last run consumed {count(last.consumed, 'event')}{of_keys}, and nothing is queued since."
        rows = condition_rows(schedule, QueuedEvents(events, target_key=key), names, None)
    words = f"{words}{then} {last.run.words}"
    return PartitionExplanation(
        key, False, None, words, received=_keys_of(events), condition=rows, last=last, plan=plan
    )


def _became(run: RunFacts) -> str:
    if run.has_failed or run.undeliverable:
        return "failed"
    if run.ended is None:
        return "is running"
    return "is done" if run.state == "Completed" else f"ended {run.state}"


def _keys_of(events: Sequence[AssetEvent]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(event.partition_key for event in events if event.partition_key is not None))
