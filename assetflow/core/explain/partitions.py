"""Explain a pending partition: what has come for a target key, and what is missing (contract chapter 5)."""

from __future__ import annotations

from datetime import datetime

from assetflow.core.explain.conditions import ConditionRow, condition_rows
from assetflow.core.explain.decisions import run_words
from assetflow.core.explain.events import EventSummary, summary_of
from assetflow.core.explain.facts import KnownNames, QueuedEvents, RunFacts
from assetflow.core.shapes import shape
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


def explain_partition(
    schedule: Schedule,
    queue: QueuedEvents,
    names: KnownNames,
    waiting_since: datetime | None = None,
    last: RunFacts | None = None,
) -> PartitionExplanation:
    """Explain what a pending partition has and what it waits for.

    Parameters:
        queue: the events queued for the target key.
        names: the names and links that the schedule needs.
        waiting_since: since when it waits; `None` for the time of its first event.
        last: the run of the last decision for the key; `None` if there was none.
    """
    key = queue.target_key or ""
    if last is not None and not queue.events:
        done = " is done" if last.state == "Completed" else ""
        words = f"Partition {key}{done}: nothing queued since its last decision. {run_words(last)}"
        return PartitionExplanation(key, False, None, words)
    first = queue.events[0].recorded if queue.events else None
    rows = condition_rows(schedule, queue, names, waiting_since or first)
    holds = bool(queue.events) and bool(rows) and rows[0].state == "satisfied"
    started = "" if first is None else f", the first at {at(first)}"
    have = f"{count(queue.count, 'event')} queued{started}" if queue.events else "nothing queued"
    words = f"Partition {key}: {have}; its condition {'holds' if holds else 'does not hold yet'}."
    if queue.waiting is not None and queue.waiting.words:
        words = f"{words} {queue.waiting.words}"
    received = dict.fromkeys(event.partition_key for event in queue.events if event.partition_key is not None)
    missing = dict.fromkeys(key for row in rows for key in row.missing)
    events = tuple(summary_of(event) for event in queue.events)
    return PartitionExplanation(key, holds, first, words, queue.count, tuple(received), tuple(missing), rows, events)
