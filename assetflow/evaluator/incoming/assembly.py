"""Remember which events came lately, and put recordings together whose events arrive one by one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from assetflow.core.values.events import AssetEvent, Recording
from assetflow.prefect_io.names import MATERIALIZATION_SUCCEEDED, RECORDING_LABEL
from assetflow.prefect_io.recordings import read_metadata
from assetflow.prefect_io.rest import Json

# How long parts may be missing before the recording's artifact has to be read.
PATIENCE = timedelta(seconds=0.5)
# How long they may be missing before the recording is taken without them, if it has no artifact.
LAST_RESORT = timedelta(seconds=60)
# So many ids are remembered.
MOST = 50_000

_NO_CONTENT = frozenset[int]()


class Seen:
    """The latest ids, each with the hashes of the contents that came under it.

    Equal contents may have different hashes, such as objects whose keys stand in another order. Then the ledger
    compares them, and the hash is added.

    An event counts as seen while it waits in the inbox: it leaves the inbox for the ledger only.
    """

    def __init__(self) -> None:
        # An id has no hash if its content does not matter.
        self._contents: OrderedDict[UUID, frozenset[int]] = OrderedDict()

    def __contains__(self, number: UUID) -> bool:
        return number in self._contents

    def has(self, event: AssetEvent) -> bool:
        """Return True if an event with this id and this content was seen."""
        return event.id in self._contents and self._has(event.id, _content_of(event))

    def has_other_content(self, number: UUID, event: Json) -> bool:
        """Return True if an event from outside assetflow has an id that was seen with other contents only."""
        try:
            is_part = RECORDING_LABEL in event["resource"]
            return not is_part and not self._has(number, _content_from_outside(event))
        except Exception:
            # The event is damaged, and its id was seen.
            return False

    def add(self, number: UUID, content: int | None = None) -> None:
        """Remember an id, and forget the oldest ids."""
        known = self._contents.get(number, _NO_CONTENT)
        self._contents[number] = known if content is None else known | {content}
        while len(self._contents) > MOST:
            self._contents.popitem(last=False)

    def add_event(self, event: AssetEvent) -> None:
        """Remember an event with its content."""
        self.add(event.id, _content_of(event))

    def _has(self, number: UUID, content: int | None) -> bool:
        contents = self._contents.get(number)
        return contents is not None and (not contents or content in contents)


def _content_of(event: AssetEvent) -> int | None:
    """Return the hash of an event's content; `None` if its id follows from its content, as for updates by tasks."""
    if event.origin.kind == "task":
        return None
    uri, key, extra, version = event.content
    return hash((uri, key, repr(extra), version))


def _content_from_outside(event: Json) -> int:
    """Return the hash of an event as Prefect sends it; to check the event first would take too long."""
    payload = cast(Json, event["payload"] or {})
    uri = event["resource"]["prefect.resource.id"]
    if event["event"] == MATERIALIZATION_SUCCEEDED:
        payload = read_metadata(payload, "")
    return hash((uri, payload.get("partition_key"), repr(payload.get("extra") or {}), payload.get("data_version")))


@dataclass
class _Gathered:
    size: int
    since: datetime
    durable: datetime | None
    events: dict[UUID, AssetEvent] = field(default_factory=dict[UUID, AssetEvent])

    def as_recording(self, recording: UUID) -> Recording:
        return Recording(recording, tuple(self.events.values()), self.durable)


class Assembly:
    """The recordings of which parts are missing."""

    def __init__(self) -> None:
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
        return any(now - _first(attempts).since >= PATIENCE for attempts in self._gathered.values())

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
            if now - first.since >= LAST_RESORT and looked is not None and looked > first.since
        }
        for recording in late:
            self.drop(recording)
        return [first.as_recording(recording) for recording, first in late.items()]


def _first(attempts: dict[datetime, _Gathered]) -> _Gathered:
    return next(iter(attempts.values()))
