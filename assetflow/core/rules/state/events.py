"""The events in the state: which ids are recorded, the new events, and the recent ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from assetflow.core.rules.state.changes import Changes
from assetflow.core.rules.state.kept import Kept, weight_of_json
from assetflow.core.rules.state.source import StateSource
from assetflow.core.values.events import AssetEvent, Content, Recording, is_recorded_as

Delivered = Mapping[tuple[str, str | None], datetime]
"""The events of one recording that are in the ledger: URI and key to when the first of them occurred."""


def _weight(event: AssetEvent) -> int:
    """Return about how many bytes an event takes in memory."""
    return 1500 + weight_of_json(event.extra) + weight_of_json(event.asset.extra)


class Events:
    """The events. An event never changes, so a remembered event is always right."""

    def __init__(self, source: StateSource, changes: Changes, limit: int) -> None:
        self._source = source
        self._changes = changes
        self._bodies = Kept[int, AssetEvent](limit, _weight)
        # The content of each event by id; None for an id that is not recorded.
        self._contents: dict[UUID, Content | None] = {}
        self._delivered: dict[UUID, dict[tuple[str, str | None], datetime]] = {}

    def load(self, recordings: Iterable[Recording]) -> None:
        """Read which events of these recordings are in the ledger, unless it is known."""
        recordings = list(recordings)
        self._load_contents(event.id for each in recordings for event in each.events)
        missing = dict.fromkeys(each.id for each in recordings if each.id not in self._delivered)
        if missing:
            self._delivered |= {number: {} for number in missing}
            for number, uri, key, occurred in self._source.delivered(missing):
                self._delivered[number].setdefault((uri, key), occurred)

    def load_bodies(self, sequences: Iterable[int]) -> None:
        """Read the events with these sequences, unless they are remembered."""
        first = self._changes.first
        missing = self._bodies.unknown(number for number in sequences if number < first)
        if missing:
            for event in self._source.events(missing):
                self._bodies.keep(place_in_ledger(event), event)

    def at(self, sequences: Sequence[int]) -> Sequence[AssetEvent]:
        """Return the events with these sequences, in their order."""
        first, new, old = self._changes.first, self._changes.events, self._bodies
        try:
            return [new[number - first] if number >= first else old[number] for number in sequences]
        except KeyError:
            self.load_bodies(sequences)
            return [new[number - first] if number >= first else old[number] for number in sequences]

    def new(self, recording: Recording) -> Sequence[AssetEvent]:
        """Return the events of a recording that are not in the ledger yet. See `only_new`."""
        return self.only_new(recording.id, recording.events)

    def only_new(self, recording: UUID, events: Sequence[AssetEvent]) -> Sequence[AssetEvent]:
        """Return those of some events of a recording that are not in the ledger yet. See `only_new`."""
        if not events:
            return ()
        if recording not in self._delivered or not all(event.id in self._contents for event in events):
            self.load([Recording(recording, tuple(events))])
        return only_new(events, self._is_recorded, self._delivered[recording])

    def newest_of(self, uri: str, key: str | None) -> AssetEvent | None:
        """Return the newest event of an asset and a key, or `None` if there is none."""
        for event in reversed(self._changes.events):
            if (event.asset.uri, event.partition_key) == (uri, key):
                return event
        return self._source.newest_of(uri, key)

    def is_recorded_otherwise(self, event: AssetEvent) -> bool:
        """Return True if the ledger has an event with this id that differs in URI, key, extra or data version."""
        if event.id not in self._contents:
            self._load_contents([event.id])
        known = self._contents[event.id]
        return known is not None and not is_recorded_as(event.content, known)

    def append(self, event: AssetEvent, recording: UUID, now: datetime) -> AssetEvent:
        """Append an event to the ledger, and return it with its sequence."""
        recorded = event.in_ledger(self._changes.next_event, now)
        self._changes.events.append(recorded)
        self._changes.recordings.append(recording)
        self._contents[event.id] = event.content
        if recording not in self._delivered:
            self.load([Recording(recording, ())])
        self._delivered[recording].setdefault((event.asset.uri, event.partition_key), event.occurred)
        return recorded

    def places(self, ids: Collection[UUID]) -> Mapping[UUID, int]:
        """Return the sequences of the events with these ids that are in the ledger."""
        new = {event.id: place_in_ledger(event) for event in self._changes.events if event.id in ids}
        return {**dict(self._source.places(ids)), **new}

    def place_at(self, uri: str, instant: datetime) -> int:
        """Return the sequence of the newest event of an asset up to an instant, 0 if there was none."""
        for event in reversed(self._changes.events):
            if event.asset.uri == uri and event.recorded is not None and event.recorded <= instant:
                return place_in_ledger(event)
        return self._source.place_at(uri, instant)

    def place_before_news(self, uri: str, instant: datetime) -> int | None:
        """Return the place in the ledger before the first event of an asset after an instant; `None` if none came."""
        known = self.place_at(uri, instant)
        own = (place_in_ledger(event) for event in self._changes.events if event.asset.uri == uri)
        first = self._source.first_after(uri, known) or next((place for place in own if place > known), None)
        return None if first is None else first - 1

    def ends_of_recordings(self, sequences: Sequence[int]) -> Sequence[int]:
        """Return those of these events, in the order of the ledger, that are the last ones of their recordings."""
        if len(sequences) < 2:
            return sequences
        first, new = self._changes.first, self._changes.recordings
        ends = dict(self._source.ends_of_recordings([number for number in sequences if number < first]))
        ends |= {new[number - first]: number for number in sequences if number >= first}
        return sorted(ends.values())

    def find(self, sequence: int) -> AssetEvent | None:
        """Return an event of an earlier unit of work, or `None` if it is not remembered."""
        return self._bodies.find(sequence)

    def learn(self, events: Iterable[AssetEvent]) -> None:
        """Remember events that are in the ledger."""
        for event in events:
            self._bodies.keep(place_in_ledger(event), event)

    def renew(self) -> None:
        """Remember the events of this unit of work, and forget which ids are recorded, because few come twice."""
        self.learn(self._changes.events)
        self._bodies.renew()
        self._contents.clear()
        self._delivered.clear()

    def _load_contents(self, numbers: Iterable[UUID]) -> None:
        missing = {number: None for number in numbers if number not in self._contents}
        if missing:
            self._contents |= missing
            self._contents |= self._source.recorded(missing)

    def _is_recorded(self, number: UUID) -> bool:
        return self._contents[number] is not None


def only_new(
    events: Iterable[AssetEvent], is_recorded: Callable[[UUID], bool], delivered: Delivered
) -> Sequence[AssetEvent]:
    """Return the events of one recording that are not in the ledger yet, each once. Contract 2.1, 2.2.

    An event is left out if its id is recorded, or if another attempt of the same task run has recorded an update of the
    same asset and key. `occurred` tells attempts apart: all events of one attempt have the same. So one attempt can
    update an asset several times, with different extras (2.4), and its events can arrive in several deliveries.

    Parameters:
        delivered: the events of this recording that are in the ledger.
    """
    new: dict[UUID, AssetEvent] = {}
    for event in events:
        moment = delivered.get((event.asset.uri, event.partition_key))
        if (moment is None or moment == event.occurred) and not is_recorded(event.id):
            new.setdefault(event.id, event)
    return list(new.values())


def place_in_ledger(event: AssetEvent) -> int:
    """Return the sequence of an event that is in the ledger."""
    assert event.sequence is not None, "the event has no sequence: it is not in the ledger"
    return event.sequence
