"""The names, aliases and descriptions of assets in the state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from assetflow.core.kept import Kept, Mirror, weight_of_json
from assetflow.core.rules.state.changes import Changes, Description, Source
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent, Content, Recording, is_recorded_as
from assetflow.core.values.schedules import ConsumerOptions


class KnownAsset:
    """The names, aliases and description of one URI, in one object because each update needs all of it.

    Attributes:
        names: the names that belong to the URI.
        aliases: the aliases that it is linked to.
        described: its group and extra; `None` if it is not an asset yet.
        tokens: its tokens; `None` after a new name or alias, until they are needed.
    """

    __slots__ = ("aliases", "described", "names", "tokens")

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.aliases: tuple[str, ...] = ()
        self.described: Description | None = None
        self.tokens: frozenset[Token] | None = None


def _weight_of_asset(known: KnownAsset) -> int:
    return 1000 + 200 * (len(known.names) + len(known.aliases)) + _weight_of_description(known.described)


def _weight_of_description(described: Description | None) -> int:
    if described is None:
        return 0
    group, extra = described
    return len(group) + weight_of_json(extra)


def _weight_of_owner(_: str) -> int:
    return 250


def _described(known: KnownAsset, asset: Asset) -> Description:
    """Return the new description of an asset: a group or extra that the declaration leaves empty stays."""
    group, extra = known.described or ("", {})
    return asset.group or group, asset.extra or extra


class Names:
    """Which URI a name belongs to, and which names, aliases and description a URI has."""

    def __init__(self, source: Source, changes: Changes, limit: int) -> None:
        self._source = source
        self._changes = changes
        # "" for a name that belongs to no URI.
        self._owners = Kept[str, str](limit // 4, _weight_of_owner, self._read_owners)
        self._assets = Kept[str, KnownAsset](limit, _weight_of_asset, self._read_assets)

    def load_owners(self, names: Iterable[str]) -> None:
        """Read to which URI each of these names belongs, unless it is remembered."""
        self._owners.load(names)

    def load(self, uris: Iterable[str]) -> None:
        """Read the names, aliases and descriptions of these URIs, unless they are remembered."""
        self._assets.load(uris)

    def known_tokens(self, event: AssetEvent) -> frozenset[Token] | None:
        """Return the tokens of an event's asset, or `None` if they are not remembered or change with this event."""
        known = self._assets.find(event.asset.uri)
        if known is None or not {*known.names}.issuperset(event.asset.names):
            return None
        return known.tokens if {*known.aliases}.issuperset(event.aliases) else None

    def owner_of(self, name: str) -> str | None:
        """Return the URI that a name belongs to, or `None`."""
        return self._owners[name] or None

    def names_of(self, uri: str) -> Collection[str]:
        """Return the names of a URI."""
        return self._assets[uri].names

    def aliases_of(self, uri: str) -> Collection[str]:
        """Return the aliases that a URI is linked to."""
        return self._assets[uri].aliases

    def tokens_of(self, uri: str) -> frozenset[Token]:
        """Return the tokens of a URI: the URI itself, its names and its aliases."""
        known = self._assets[uri]
        if known.tokens is None:
            known.tokens = all_tokens(uri, known.names, known.aliases)
        return known.tokens

    def description_of(self, uri: str) -> Description:
        """Return the group and the extra that an asset was last declared with."""
        return self._assets[uri].described or ("", {})

    def declare(self, name: str, uri: str) -> None:
        """Give a URI a name, which the URI that had it loses."""
        owner = self.owner_of(name)
        if owner is not None:
            former = self._assets[owner]
            former.names = tuple(each for each in former.names if each != name)
            former.tokens = None
        known = self._asset(uri)
        known.names += (name,)
        known.tokens = None
        self._assets.grew(200)
        self._owners.keep(name, uri)
        self._changes.names[name] = uri

    def link(self, alias: str, uri: str) -> None:
        """Link a URI to an alias, for good."""
        known = self._asset(uri)
        if alias not in known.aliases:
            known.aliases += (alias,)
            known.tokens = None
            self._assets.grew(200)
            self._changes.links[alias, uri] = None

    def describe(self, asset: Asset) -> None:
        """Save the group and the extra of an asset, unless it is declared without them."""
        known = self._asset(asset.uri)
        if not (asset.group or asset.extra):
            return
        described = _described(known, asset)
        if described != known.described:
            known.described = described
            self._assets.grew(_weight_of_description(described))
            self._changes.descriptions[asset.uri] = None

    def learn(self, events: Iterable[AssetEvent]) -> None:
        """Forget what events that another process recorded have changed: names, links and descriptions."""
        for event in events:
            asset = event.asset
            known = self._assets.find(asset.uri)
            if known is not None and (self.known_tokens(event) is None or _described(known, asset) != known.described):
                self._assets.forget([asset.uri])
            if self._owners.find(asset.name) == "":
                self._owners.forget([asset.name])

    def renew(self) -> None:
        """Forget the least recently used entries if there are too many."""
        self._owners.renew()
        self._assets.renew()

    def _read_owners(self, names: Collection[str]) -> Iterable[tuple[str, str]]:
        found = dict(self._source.owners(names))
        return ((name, found.get(name, "")) for name in names)

    def _read_assets(self, uris: Collection[str]) -> Iterable[tuple[str, KnownAsset]]:
        found = {uri: KnownAsset() for uri in uris}
        for uri, name in self._source.names(found):
            found[uri].names += (name,)
        for uri, alias in self._source.aliases(found):
            found[uri].aliases += (alias,)
        for uri, group, extra in self._source.descriptions(found):
            found[uri].described = (group, extra)
        return found.items()

    def _asset(self, uri: str) -> KnownAsset:
        """Return what is remembered of a URI; make the URI an asset if it is not one."""
        known = self._assets[uri]
        if known.described is None:
            known.described = ("", {})
            self._changes.assets[uri] = None
        return known


def all_tokens(uri: str, names: Iterable[str], aliases: Iterable[str]) -> frozenset[Token]:
    """Return the tokens of a URI that has these names and aliases."""
    return frozenset(
        (Token("uri", uri), *(Token("name", name) for name in names), *(Token("alias", alias) for alias in aliases))
    )


Delivered = Mapping[tuple[str, str | None], datetime]
"""The events of one recording that are in the ledger: URI and key to when the first of them occurred."""


def _weight_of_event(event: AssetEvent) -> int:
    """Return about how many bytes an event takes in memory."""
    return 1500 + weight_of_json(event.extra) + weight_of_json(event.asset.extra)


class Events:
    """The events. An event never changes, so a remembered event is always right."""

    def __init__(self, source: Source, changes: Changes, limit: int) -> None:
        self._source = source
        self._changes = changes
        self._bodies = Kept[int, AssetEvent](limit, _weight_of_event)
        # The content of each event by id; None for an id that is not recorded.
        self._contents = Mirror[UUID, Content | None](source.recorded, None)
        self._delivered = Mirror[UUID, dict[tuple[str, str | None], datetime]](self._read_delivered, {})

    def load(self, recordings: Iterable[Recording]) -> None:
        """Read which events of these recordings are in the ledger, unless it is known."""
        recordings = list(recordings)
        self._contents.load(event.id for each in recordings for event in each.events)
        self._delivered.load(each.id for each in recordings)

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
        if len(events) > 1:
            self._contents.load(event.id for event in events)
        return only_new(events, self._is_recorded, self._delivered[recording])

    def newest_of(self, uri: str, key: str | None) -> AssetEvent | None:
        """Return the newest event of an asset and a key, or `None` if there is none."""
        for event in reversed(self._changes.events):
            if (event.asset.uri, event.partition_key) == (uri, key):
                return event
        return self._source.newest_event(uri, key)

    def is_recorded_otherwise(self, event: AssetEvent) -> bool:
        """Return True if the ledger has an event with this id that differs in URI, key, extra or data version."""
        known = self._contents[event.id]
        return known is not None and not is_recorded_as(event.content, known)

    def append(self, event: AssetEvent, recording: UUID, now: datetime) -> AssetEvent:
        """Append an event to the ledger, and return it with its sequence."""
        recorded = event.in_ledger(self._changes.next_event, now)
        self._changes.events.append(recorded)
        self._changes.recordings.append(recording)
        self._contents[event.id] = event.content
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

    def _read_delivered(
        self, recordings: Collection[UUID]
    ) -> Iterable[tuple[UUID, dict[tuple[str, str | None], datetime]]]:
        found: dict[UUID, dict[tuple[str, str | None], datetime]] = {number: {} for number in recordings}
        for number, uri, key, occurred in self._source.delivered(recordings):
            found[number].setdefault((uri, key), occurred)
        return found.items()

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


def weight_of_options(options: ConsumerOptions) -> int:
    """Return about how many bytes the options of a consumer take in memory; most of them are its schedule."""
    tokens = len(options.wanted_tokens) + len(options.data.tokens)
    return 600 + 600 * tokens + sum(weight_of_json(asset.extra) for asset in options.schedule.named_assets)


def _weight_of_consumer(consumer: Consumer) -> int:
    return 600 + weight_of_options(consumer.options)


def _weight_of_numbers(found: set[int]) -> int:
    return 500 + 60 * len(found)


def _weight_of_list(found: Sequence[Consumer]) -> int:
    return 500 + 8 * len(found)


class Consumers:
    """The consumers by id, and by the tokens in their schedules."""

    def __init__(self, source: Source, changes: Changes, limit: int) -> None:
        self._source = source
        self._changes = changes
        self._consumers = Kept[int, Consumer](limit, _weight_of_consumer, source.consumers)
        self._index = Kept[Token, set[int]](limit, _weight_of_numbers, self._read_index)
        self._wanting = Kept[frozenset[Token], Sequence[Consumer]](limit, _weight_of_list, self._read_wanting)

    def load(self, tokens: Iterable[Token]) -> None:
        """Read the consumers whose schedules have these tokens, unless they are remembered."""
        self._index.load(tokens)

    def load_ids(self, numbers: Iterable[int]) -> None:
        """Read the consumers with these ids, unless they are remembered."""
        self._consumers.load(numbers)

    def find(self, number: int) -> Consumer | None:
        """Return the consumer with this id, or `None` if it was removed."""
        if number in self._changes.consumers:
            return self._changes.consumers[number][1]
        self.load_ids([number])
        return self._consumers.find(number)

    def live(self) -> Sequence[Consumer]:
        """Return all consumers that were not removed, ordered by id."""
        numbers = set(self._source.live())
        for number, (_, after) in self._changes.consumers.items():
            (numbers.discard if after is None else numbers.add)(number)
        self.load_ids(numbers)
        return [self._consumers[number] for number in sorted(numbers)]

    def known_wanting(self, tokens: frozenset[Token]) -> Sequence[Consumer] | None:
        """Return what `wanting` returns, or `None` if the answer is not remembered."""
        return self._wanting.find(tokens)

    def wanting(self, tokens: frozenset[Token]) -> Sequence[Consumer]:
        """Return the consumers whose schedule has one of these tokens, ordered by id."""
        return self._wanting[tokens]

    def save(self, consumer: Consumer) -> None:
        """Save a new or changed consumer."""
        before = self.find(consumer.id)
        self._consumers.keep(consumer.id, consumer)
        before_tokens = before.options.wanted_tokens if before else frozenset[Token]()
        self._reindex(consumer.id, before_tokens, consumer.options.wanted_tokens)
        self._change(consumer.id, before, consumer)

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; its receipts and decisions stay."""
        before = self.find(consumer.id)
        self._consumers.forget([consumer.id])
        self._reindex(consumer.id, consumer.options.wanted_tokens, frozenset())
        self._change(consumer.id, before, None)

    def renew(self) -> None:
        """Forget the least recently used entries if there are too many."""
        self._consumers.renew()
        self._index.renew()
        self._wanting.renew()

    def _read_index(self, tokens: Collection[Token]) -> Iterable[tuple[Token, set[int]]]:
        found: dict[Token, set[int]] = {token: set() for token in tokens}
        for token, number in self._source.wanting(tokens):
            found[token].add(number)
        self.load_ids(set[int]().union(*found.values()))
        return found.items()

    def _read_wanting(
        self, wanted: Collection[frozenset[Token]]
    ) -> Iterable[tuple[frozenset[Token], Sequence[Consumer]]]:
        for tokens in wanted:
            self.load(tokens)
            numbers = set[int]().union(*(self._index[token] for token in tokens))
            self.load_ids(numbers)
            yield tokens, [self._consumers[number] for number in sorted(numbers)]

    def _change(self, number: int, before: Consumer | None, after: Consumer | None) -> None:
        first, _ = self._changes.consumers.get(number, (before, None))
        self._changes.consumers[number] = (first, after)

    def _reindex(self, number: int, before: frozenset[Token], after: frozenset[Token]) -> None:
        # Load before the change: the source answers with the state before this unit of work.
        self.load(before | after)
        self._wanting.forget_all()
        for token in before - after:
            self._index[token].discard(number)
        for token in after - before:
            self._index[token].add(number)
            self._index.grew(60)
