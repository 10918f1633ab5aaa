"""Put recordings together whose events arrive one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from assetflow.core.values.events import AssetEvent, Recording

PATIENCE = timedelta(seconds=0.5)
LAST_RESORT = timedelta(seconds=60)


@dataclass
class _Gathered:
    size: int
    since: datetime
    durable: datetime | None
    events: dict[UUID, AssetEvent] = field(default_factory=dict[UUID, AssetEvent])

    def as_recording(self, recording: UUID) -> Recording:
        return Recording(recording, tuple(self.events.values()), self.durable)


class Assembly:
    """The recordings of which parts are missing.

    Parameters:
        patience: how long parts may be missing before the recording's artifact has to be read.
        last_resort: how long parts may be missing before the recording is taken without them, if it has no artifact.
    """

    def __init__(self, patience: timedelta = PATIENCE, last_resort: timedelta = LAST_RESORT) -> None:
        self._patience = patience
        self._last_resort = last_resort
        # By recording and, within it, by attempt.
        self._gathered: dict[UUID, dict[datetime, _Gathered]] = {}

    def __len__(self) -> int:
        return len(self._gathered)

    def add(self, part: Recording, size: int, now: datetime) -> Recording | None:
        """Add one part, a recording with one event. Return the recording if it is complete, else `None`.

        Parameters:
            size: the number of events that belong to the recording.
        """
        (event,) = part.events
        attempts = self._gathered.setdefault(part.id, {})
        gathered = attempts.setdefault(event.occurred, _Gathered(size, now, part.durable))
        gathered.events[event.id] = event
        if len(gathered.events) < gathered.size:
            return None
        self.drop(part.id)
        return gathered.as_recording(part.id)

    def drop(self, recording: UUID) -> None:
        """Forget the parts of a recording: the complete one has arrived."""
        self._gathered.pop(recording, None)

    def has_overdue(self, now: datetime) -> bool:
        """Return True if the parts of a recording are late."""
        return any(now - _first(attempts).since >= self._patience for attempts in self._gathered.values())

    def give_up(self, now: datetime, looked: datetime | None) -> list[Recording]:
        """Return the recordings whose missing parts are not expected any more, with the parts of the first attempt.

        Parameters:
            looked: when the last successful sweep began, `None` before the first one. A task writes its artifact
                before it sends the parts, so a sweep that began after they came would have found it.
        """
        firsts = {recording: _first(attempts) for recording, attempts in self._gathered.items()}
        late = {
            recording: first
            for recording, first in firsts.items()
            if now - first.since >= self._last_resort and looked is not None and looked > first.since
        }
        for recording in late:
            self.drop(recording)
        return [first.as_recording(recording) for recording, first in late.items()]


def _first(attempts: dict[datetime, _Gathered]) -> _Gathered:
    return next(iter(attempts.values()))
