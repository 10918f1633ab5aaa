"""What happened: updates and decisions, newest first. The updates of one task, or of one recording, are one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assetflow.core.explain import source_of
from assetflow.core.values.addresses import redacted
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.keeping import CauseKind
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord, DecisionStatus, EventFilter

_CHANGED = "because what it was made from has changed"
_EAGER: Mapping[CauseKind, str] = {
    "missing": "because what it makes was missing",
    "code": "because its code has changed",
    "dependency": "because it reads other assets since its last deploy",
}
ROWS = 50
# What writes many partitions makes as many events, which are one row.
EVENTS = 4 * ROWS


@dataclass(frozen=True)
class Happened:
    """A decision, or the updates of one task or one recording, with the time at which the newest was committed.

    Attributes:
        event: the newest of the updates.
        events: all of them, newest first.
    """

    at: datetime
    event: AssetEvent | None = None
    decision: DecisionRecord | None = None
    events: tuple[AssetEvent, ...] = ()

    @property
    def assets(self) -> Sequence[AssetEvent]:
        """One event of each asset that was updated."""
        return list({event.uri: event for event in self.events}.values())

    @property
    def partitions(self) -> int:
        """How many partition keys were updated."""
        return len({event.partition_key for event in self.events if event.partition_key is not None})

    @property
    def keys(self) -> str:
        """The first and the last partition key of several updates: `2026-01-01 … 2026-01-31`."""
        found = sorted({each.partition_key for each in self.events if each.partition_key is not None})
        return f"{found[0]} … {found[-1]}" if len(found) > 1 else ""

    @property
    def reason(self) -> str:
        """Why a run was asked for that consumes nothing: for the first of the causes."""
        made = self.decision
        if made is None or made.kind not in ("eager", "lazy"):
            return "" if made is None else f"asked for by a {made.kind}"
        if made.kind == "lazy":
            return "because its data is due"
        return _EAGER.get(made.because[0].kind, _CHANGED) if made.because else _CHANGED


def happened(entries: Sequence[Happened]) -> list[Happened]:
    """Return entries newest first. Decisions are listed above the update that led to them."""
    return sorted(entries, key=lambda each: (each.at, each.decision is not None), reverse=True)


def updates_happened(reader: Reader, uri: str | None, before: int | None) -> list[Happened]:
    """Return updates from before a sequence, those of one task or one recording together."""
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


def receipts_of(reader: Reader, entries: Sequence[Happened]) -> Mapping[int | None, Mapping[str, int]]:
    """Return how many receipts of each status the updates of each entry have, by the sequence of its newest update."""
    sequences = [event.sequence for each in entries for event in each.events if event.sequence is not None]
    counts = reader.receipts.counts(sequences)
    found: dict[int | None, Counter[str]] = {}
    for each in entries:
        for event in each.events:
            found.setdefault(each.events[0].sequence, Counter()).update(counts.get(event.sequence or 0, {}))
    return found


def _are_one(newer: AssetEvent, event: AssetEvent) -> bool:
    """Return True if one task made both updates, or one transaction recorded both from the same source."""
    task, same = newer.origin.task_run, event.origin.task_run
    if task is not None and same is not None:
        return task.id == same.id
    return newer.recorded == event.recorded and source_of(newer.origin) == source_of(event.origin)
