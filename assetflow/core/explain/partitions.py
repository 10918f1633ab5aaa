"""Explain a pending partition: what has come for a target key, and what is missing (contract chapter 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from assetflow.core.explain.conditions import ConditionRow, condition_rows
from assetflow.core.explain.decisions import run_words
from assetflow.core.explain.events import EventSummary, summary_of
from assetflow.core.explain.facts import KnownNames, QueuedEvents, RunFacts
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.words import at, count, iso


@dataclass(frozen=True)
class PartitionExplanation:
    """The explanation of one pending partition.

    Attributes:
        holds: its condition holds.
        since: when its first event was recorded, UTC.
        condition: the rows of its condition, each rolled-up leaf with its received and missing keys.
        events: the events queued for the key, oldest first.
        queued: the number of queued events.
    """

    target_key: str
    holds: bool
    since: datetime | None
    words: str
    condition: tuple[ConditionRow, ...]
    events: tuple[EventSummary, ...]
    queued: int

    @property
    def received(self) -> tuple[str, ...]:
        """The upstream keys that have come, of all leaves."""
        return tuple(dict.fromkeys(event.partition_key for event in self.events if event.partition_key is not None))

    @property
    def missing(self) -> tuple[str, ...]:
        """The upstream keys for which rolled-up leaves wait, of all leaves."""
        return tuple(dict.fromkeys(key for row in self.condition for key in row.missing))

    def as_json(self) -> dict[str, object]:
        return {
            "target_key": self.target_key,
            "holds": self.holds,
            "since": iso(self.since),
            "words": self.words,
            "queued": self.queued,
            "received": list(self.received),
            "missing": list(self.missing),
            "condition": [row.as_json() for row in self.condition],
            "events": [event.as_json() for event in self.events],
        }


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
        return PartitionExplanation(key, False, None, words, (), (), 0)
    first = queue.events[0].recorded if queue.events else None
    rows = condition_rows(schedule, queue, names, waiting_since or first)
    holds = bool(queue.events) and bool(rows) and rows[0].state == "satisfied"
    started = "" if first is None else f", the first at {at(first)}"
    have = f"{count(queue.count, 'event')} queued{started}" if queue.events else "nothing queued"
    words = f"Partition {key}: {have}; its condition {'holds' if holds else 'does not hold yet'}."
    if queue.waiting is not None and queue.waiting.words:
        words = f"{words} {queue.waiting.words}"
    events = tuple(map(summary_of, queue.events))
    return PartitionExplanation(key, holds, first, words, rows, events, queue.count)
