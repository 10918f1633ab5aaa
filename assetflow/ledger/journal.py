"""Events in a unit of work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select

from assetflow.core.events import AssetEvent, Recording
from assetflow.ledger.among import among
from assetflow.ledger.bulk import insert_rows
from assetflow.ledger.rows import STORED_EVENT, event_to_row
from assetflow.ledger.tables import EVENT, EVENT_ALIAS

_KNOWN = select(EVENT.c.id).where(among(EVENT.c.id, "ids"))
_RECORDED = select(EVENT.c.recording, EVENT.c.uri, EVENT.c.partition_key).where(among(EVENT.c.recording, "recordings"))
_ADD_EVENTS = insert_rows(STORED_EVENT)
_ADD_ALIASES = insert_rows((EVENT_ALIAS.c.alias, EVENT_ALIAS.c.sequence))


class Journal:
    """The events, oldest first: which are recorded already, and the new ones behind them, written by `flush`."""

    def __init__(self, connection: Connection, last: int) -> None:
        self._connection = connection
        self.last = last
        self._known: dict[UUID, bool] = {}
        self._recordings: dict[UUID, set[tuple[str, str | None]]] = {}
        self._new: list[tuple[AssetEvent, UUID]] = []

    def load(self, recordings: Iterable[Recording]) -> None:
        """Read what is recorded already of these, as far as it is not known yet."""
        recordings = list(recordings)
        ids = dict.fromkeys(e.id for recording in recordings for e in recording.events if e.id not in self._known)
        if ids:
            self._known |= dict.fromkeys(ids, False)
            self._known |= dict.fromkeys(self._connection.scalars(_KNOWN, {"ids": ids}), True)
        missing = dict.fromkeys(each.id for each in recordings if each.id not in self._recordings)
        if missing:
            self._recordings |= {number: set() for number in missing}
            for number, uri, key in self._connection.execute(_RECORDED, {"recordings": missing}).all():
                self._recordings[number].add((uri, key))

    def new_events(self, recording: UUID, events: Sequence[AssetEvent]) -> Sequence[AssetEvent]:
        if recording not in self._recordings or not all(event.id in self._known for event in events):
            self.load([Recording(recording, tuple(events))])
        earlier = self._recordings[recording]
        new: dict[UUID, AssetEvent] = {}
        for event in events:
            if not self._known[event.id] and (event.uri, event.partition_key) not in earlier:
                new.setdefault(event.id, event)
        return list(new.values())

    def append(self, event: AssetEvent, recording: UUID, now: datetime) -> AssetEvent:
        self.last += 1
        recorded = event.in_ledger(self.last, now)
        self._known[event.id] = True
        if recording not in self._recordings:
            self.load([Recording(recording, ())])
        self._recordings[recording].add((event.uri, event.partition_key))
        self._new.append((recorded, recording))
        return recorded

    @property
    def appended(self) -> Iterable[AssetEvent]:
        """The new events, oldest first."""
        return (event for event, _ in self._new)

    def flush(self) -> None:
        """Write the new events."""
        _ADD_EVENTS.run(self._connection, [event_to_row(event, recording) for event, recording in self._new])
        aliases = [(alias, event.sequence) for event, _ in self._new for alias in event.aliases]
        _ADD_ALIASES.run(self._connection, aliases)
