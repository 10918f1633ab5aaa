"""Recordings put together from their events: Prefect hands over one by one what the ledger takes as a whole.

A retry of a task announces the same recording again, and may say something else: parts are put together with those of
their own attempt only, which occurred at the same moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from assetflow.core.events import AssetEvent, Recording

PATIENCE = timedelta(seconds=0.5)
LAST_RESORT = timedelta(seconds=60)


@dataclass
class _Gathered:
    size: int
    since: datetime
    events: dict[UUID, AssetEvent] = field(default_factory=dict[UUID, AssetEvent])

    def as_recording(self, recording: UUID) -> Recording:
        return Recording(recording, tuple(self.events.values()))


class Assembly:
    """Parts of recordings that are not complete yet.

    Parameters:
        patience: how long parts may be missing before the recording is looked for elsewhere.
        last_resort: how long before the parts that came count as all there is; their artifact is gone then.
    """

    def __init__(self, patience: timedelta = PATIENCE, last_resort: timedelta = LAST_RESORT) -> None:
        self._patience = patience
        self._last_resort = last_resort
        # By recording and, within it, by attempt.
        self._gathered: dict[UUID, dict[datetime, _Gathered]] = {}

    def __len__(self) -> int:
        return len(self._gathered)

    def add(self, recording: UUID, size: int, event: AssetEvent, now: datetime) -> Recording | None:
        """One more part; the recording, once it is whole."""
        attempts = self._gathered.setdefault(recording, {})
        gathered = attempts.setdefault(event.occurred, _Gathered(size, now))
        gathered.events[event.id] = event
        if len(gathered.events) < gathered.size:
            return None
        self.drop(recording)
        return gathered.as_recording(recording)

    def drop(self, recording: UUID) -> None:
        """The recording was found whole."""
        self._gathered.pop(recording, None)

    def has_overdue(self, now: datetime) -> bool:
        """Whether a recording lacks parts for longer than they take to come."""
        return any(now - _first(attempts).since >= self._patience for attempts in self._gathered.values())

    def give_up(self, now: datetime) -> list[Recording]:
        """The recordings whose missing parts are not expected any more, with the parts that came first."""
        firsts = {recording: _first(attempts) for recording, attempts in self._gathered.items()}
        late = {recording: first for recording, first in firsts.items() if now - first.since >= self._last_resort}
        for recording in late:
            self.drop(recording)
        return [first.as_recording(recording) for recording, first in late.items()]


def _first(attempts: dict[datetime, _Gathered]) -> _Gathered:
    return next(iter(attempts.values()))
