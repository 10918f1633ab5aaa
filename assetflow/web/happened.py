"""What happened: updates and decisions, newest first. The updates of one task are one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from assetflow.core.events import AssetEvent
from assetflow.core.redaction import redacted
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord, DecisionStatus, EventFilter

ROWS = 50
# A task that writes many partitions makes as many events, which are one row.
EVENTS = 4 * ROWS


@dataclass(frozen=True)
class Happened:
    """A decision, or the updates of one asset by one task, with the time at which the newest was committed.

    Attributes:
        event: the newest of the updates.
        events: all of them, newest first.
    """

    at: datetime
    event: AssetEvent | None = None
    decision: DecisionRecord | None = None
    events: tuple[AssetEvent, ...] = ()

    @property
    def keys(self) -> str:
        """The first and the last partition key of several updates: `2026-01-01 … 2026-01-31`."""
        found = sorted({each.partition_key for each in self.events if each.partition_key is not None})
        return f"{found[0]} … {found[-1]}" if len(found) > 1 else ""


def happened(entries: Sequence[Happened]) -> list[Happened]:
    """Return entries newest first. Decisions are listed above the update that led to them."""
    return sorted(entries, key=lambda each: (each.at, each.decision is not None), reverse=True)


def updates_happened(reader: Reader, uri: str | None, before: int | None) -> list[Happened]:
    """Return updates from before a sequence, those of one task together."""
    query = EventFilter(uri=uri, to_sequence=None if before is None else max(0, before - 1))
    found: list[Happened] = []
    for event in map(redacted, reader.events.find(query, newest_first=True, limit=EVENTS + 1)):
        last = found[-1] if found else None
        if last is not None and last.event is not None and _are_one(last.event, event):
            found[-1] = Happened(last.at, last.event, events=(*last.events, event))
        else:
            found.append(Happened(event.recorded or event.occurred, event, events=(event,)))
    return found


def decisions_happened(
    reader: Reader, consumer: int | None, before: int | None, status: DecisionStatus | None = None
) -> list[Happened]:
    """Return decisions from before a number."""
    found = reader.decisions.find(consumer=consumer, status=status, before=before, limit=ROWS + 1)
    return [Happened(each.made, decision=each) for each in found]


def _are_one(newer: AssetEvent, event: AssetEvent) -> bool:
    """Return True if the same task updated another partition of the same asset."""
    task, same = newer.origin.task_run, event.origin.task_run
    is_one_task = task is not None and same is not None and task.id == same.id
    return is_one_task and event.uri == newer.uri and event.partition_key is not None
