"""The state of chapter 8: the data graph, updates, readings, runs, targets, policies and backfills.

It is the part of a state that versions and freshness need. Like the rest of the state it reads from its source what it
does not remember, and notes its changes. Without a source it holds everything itself, as in the simulator.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge
from itertools import islice, takewhile
from uuid import UUID

from assetflow.core.freshness.graph import FlowNode, Resolve, TokensOf
from assetflow.core.freshness.records import FlowRecord, Item, ItemUpdate, Moment, Target, VersionRun
from assetflow.core.freshness.state.source import FreshnessChanges, FreshnessSource
from assetflow.core.freshness.state.targets import Backfills, Policies, Runs, Targets
from assetflow.core.kept import Mirror
from assetflow.core.values.consumers import Consumer


class Updates:
    """The updates of all items: those in the source, then those of this unit of work."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._own: dict[Item, list[ItemUpdate]] = {}
        self._newest = Mirror[Item, ItemUpdate | None](source.newest, None)
        self._first: dict[Item, ItemUpdate] = {}
        self._of: dict[str, list[ItemUpdate]] = {}
        self._seen: dict[UUID, datetime | None] = {}
        # The keys of each asset, sorted, and its items in the order of their newest updates.
        self._keys: dict[str, list[str]] = {}
        self._recent: dict[str, dict[Item, None]] = {}
        self._stored = Mirror[str, ItemUpdate].one_by_one(source.newest_of)

    def load(self, items: Iterable[Item]) -> None:
        """Read the newest updates of these items, unless they are known."""
        self._newest.load(items)

    def add(self, update: ItemUpdate) -> bool:
        """Add an update or a confirmation; return True if the item is new."""
        item = update.item
        is_new = self.newest(item) is None
        self._own.setdefault(item, []).append(update)
        self._newest[item] = update
        self._of.setdefault(item.uri, []).append(update)
        self._changes.updates.append(update)
        if is_new:
            self._first[item] = update
            if item.key is not None:
                insort(self._keys.setdefault(item.uri, []), item.key)
        recent = self._recent.setdefault(item.uri, {})
        recent.pop(item, None)
        recent[item] = None
        return is_new

    def newest(self, item: Item) -> ItemUpdate | None:
        """Return the newest update of an item; `None` if it was never made."""
        return self._newest[item]

    def first(self, item: Item) -> ItemUpdate | None:
        """Return the first update of an item."""
        return self._first.get(item) or self._source.first(item)

    def as_of(self, item: Item, sequence: int) -> ItemUpdate | None:
        """Return the newest update of an item up to a place in the ledger; `None` if there was none."""
        newest = self.newest(item)
        if newest is None or newest.sequence <= sequence:
            return newest
        own = self._own.get(item, ())
        place = _place_after(own, sequence)
        return own[place - 1] if place else self._source.as_of(item, sequence)

    def is_unread(self, update: ItemUpdate, after: int) -> bool:
        """Return True if an update has another version than its item had at an earlier place in the ledger."""
        read = self.as_of(update.item, after)
        return read is None or read.data_version != update.data_version

    def version_run(self, update: ItemUpdate) -> VersionRun:
        """Return the updates with the same version that followed an update directly."""
        own = self._own.get(update.item, ())
        place = _index(own, update)
        last, ended = self._source.version_run(update) if place is None else VersionRun(update, None)
        if ended is not None:
            return VersionRun(last, ended)
        for each in own[0 if place is None else place + 1 :]:
            if each.data_version != update.data_version:
                return VersionRun(last, each)
            last = each
        return VersionRun(last, None)

    def history(self, item: Item) -> Iterator[ItemUpdate]:
        """Yield the updates and confirmations of an item, the newest first."""
        own = self._own.get(item, ())
        yield from reversed(own)
        stored = self._source.history(item)
        if not own and (newest := self.newest(item)) is not None:
            # Mostly nobody asks for an older one.
            yield newest
            stored = islice(stored, 1, None)
        yield from stored

    def of_asset(self, uri: str) -> Iterator[ItemUpdate]:
        """Yield the updates and confirmations of an asset, whatever their keys, the newest first."""
        own = [reversed(self._own[item]) for item in self._recent.get(uri, ()) if item in self._own]
        yield from merge(*own, key=lambda update: (update.sequence, update.recorded), reverse=True)
        stored = self._source.of_asset(uri)
        if not own and (newest := self.newest_of(uri)) is not None:
            yield newest
            stored = islice(stored, 1, None)
        yield from stored

    def greatest_keys(self, uri: str, most: int) -> Sequence[str]:
        """Return the greatest keys of an asset, sorted."""
        found = {*self._keys.get(uri, ())[-most:], *self._source.keys(uri, most)}
        return sorted(found)[-most:]

    def greatest_keys_that(self, uri: str, most: int, is_there: Callable[[Item], bool]) -> Sequence[str]:
        """Return the greatest keys of an asset whose items were there at an earlier time, sorted."""
        wanted = most
        while True:
            keys = self.greatest_keys(uri, wanted)
            there = [key for key in keys if is_there(Item(uri, key))]
            if len(there) >= most or len(keys) < wanted:
                return there[-most:]
            wanted *= 2

    def keys(self, uri: str) -> Sequence[str]:
        """Return all keys of an asset, sorted."""
        stored = self._source.keys(uri)
        own = self._keys.get(uri, [])
        return sorted({*own, *stored}) if stored else own

    def count_keys(self, uri: str) -> int:
        """Return how many keys an asset has."""
        return len(self.keys(uri)) if uri in self._keys else self._source.count_keys(uri)

    def newest_of(self, uri: str) -> ItemUpdate | None:
        """Return the newest update of an asset, whatever its key."""
        recent = self._recent.get(uri)
        if recent:
            return self.newest(next(reversed(recent)))
        return self._stored[uri]

    def first_of(self, uri: str, since: Moment) -> ItemUpdate | None:
        """Return the first update of a key of an asset since a moment."""
        own = self._of.get(uri, ())
        later = islice(own, bisect_left(own, since, key=lambda update: update.moment), None)
        return self._source.first_of(uri, since) or next((each for each in later if each.item.key is not None), None)

    def newest_of_until(self, uri: str, until: datetime) -> ItemUpdate | None:
        """Return the update of an asset that was the newest one at an earlier instant, whatever its key."""
        return self._source.newest_of(uri, until)

    def changed(self, uri: str, after: int) -> Collection[Item]:
        """Return the items of an asset whose newest update came after a place in the ledger."""

        def is_later(item: Item) -> bool:
            newest = self._newest[item]
            return newest is not None and newest.sequence > after

        own = takewhile(is_later, reversed(self._recent.get(uri, {})))
        return dict.fromkeys([*own, *self._source.changed(uri, after)])

    def see(self, update: ItemUpdate, now: datetime) -> None:
        """Remember that an observation saw an update."""
        self._seen[update.event] = now
        self._changes.seen[update.event] = (update, now)

    def seen(self, update: ItemUpdate) -> datetime | None:
        """Return when an observation saw an update last; `None` if none did."""
        if update.event not in self._seen:
            self._seen[update.event] = self._source.seen(update)
        return self._seen[update.event]


def _place_after(updates: Sequence[ItemUpdate], sequence: int) -> int:
    """Return how many updates there are up to a place in the ledger."""
    return bisect_left(updates, sequence + 1, key=lambda update: update.sequence)


def _index(updates: Sequence[ItemUpdate], update: ItemUpdate) -> int | None:
    places = range(_place_after(updates, update.sequence - 1), len(updates))
    return next((place for place in places if updates[place].event == update.event), None)


class Readings:
    """The target keys of partitioned consumers, and the keys of their inputs that map to each."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._keys: dict[tuple[Target, str], dict[str, None]] = {}
        self._targets: dict[int, dict[str, None]] = {}
        self._sorted: dict[int, list[str]] = {}
        self._loaded: dict[Target, dict[str, list[str]]] = {}

    def load(self, consumer: int, targets: Iterable[Target]) -> None:
        """Read the keys of all inputs that map to these targets of a consumer, unless they are known."""
        missing = [each for each in targets if each.key is not None and each not in self._loaded]
        if missing and not self._is_forgotten(consumer):
            self._loaded |= {target: {} for target in missing}
            found = self._source.readings_of(consumer, [target.key for target in missing if target.key is not None])
            for target_key, uri, key in found:
                self._loaded[Target(consumer, target_key)].setdefault(uri, []).append(key)

    def add(self, consumer: int, uri: str, key: str, targets: Iterable[str], *, makes_targets: bool = True) -> None:
        """Remember to which targets a new key of an input maps.

        Parameters:
            makes_targets: the keys of own outputs that are read do not make targets; but their own keys do.
        """
        for target_key in targets:
            target = Target(consumer, target_key)
            self._keys.setdefault((target, uri), {})[key] = None
            self._changes.readings.append((target, uri, key))
            if makes_targets:
                self.add_target(target)

    def add_target(self, target: Target) -> None:
        """Remember that there is a target."""
        known = self._targets.setdefault(target.consumer, {})
        if target.key is not None and target.key not in known:
            known[target.key] = None
            self._changes.target_keys[target] = None
            insort(self._sorted.setdefault(target.consumer, []), target.key)

    def keys(self, target: Target, uri: str) -> Collection[str]:
        """Return the keys of an input that map to a target."""
        self.load(target.consumer, [target])
        stored = self._loaded.get(target, {}).get(uri, ())
        own = self._keys.get((target, uri), {})
        return {**dict.fromkeys(stored), **own} if stored else own

    def targets(self, consumer: int) -> Sequence[str]:
        """Return all target keys of a consumer, sorted."""
        stored = () if self._is_forgotten(consumer) else self._source.target_keys(consumer)
        own = self._sorted.get(consumer, [])
        return sorted({*own, *stored}) if stored else own

    def has(self, target: Target) -> bool:
        """Return True if a partitioned consumer has a target."""
        stored = not self._is_forgotten(target.consumer) and self._source.has_target(target)
        return stored or target.key in self._targets.get(target.consumer, ())

    def count(self, consumer: int) -> int:
        """Return how many targets a consumer has."""
        known = consumer in self._sorted or self._is_forgotten(consumer)
        return len(self.targets(consumer)) if known else self._source.count_targets(consumer)

    def greatest(self, consumer: int, most: int) -> Sequence[str]:
        """Return the greatest target keys of a consumer, sorted."""
        stored = () if self._is_forgotten(consumer) else self._source.target_keys(consumer, most)
        found = {*self._sorted.get(consumer, ())[-most:], *stored}
        return sorted(found)[-most:]

    def forget(self, consumer: int) -> None:
        """Forget the targets of a consumer, because its mappers change or it is gone."""
        self._targets.pop(consumer, None)
        self._sorted.pop(consumer, None)
        self._loaded = {target: keys for target, keys in self._loaded.items() if target.consumer != consumer}
        self._keys = {place: keys for place, keys in self._keys.items() if place[0].consumer != consumer}
        changes = self._changes
        changes.forgotten[consumer] = None
        changes.readings = [each for each in changes.readings if each[0].consumer != consumer]
        changes.target_keys = {each: None for each in changes.target_keys if each.consumer != consumer}

    def _is_forgotten(self, consumer: int) -> bool:
        return consumer in self._changes.forgotten


@dataclass
class Agenda:
    """The targets, flows and assets to judge in the next pass.

    Attributes:
        targets: the targets to judge.
        flows: the flows whose runs, updates or declarations changed: what waits below them may run now.
        assets: the assets that were updated or observed.
        instants: the instants of the updates.
        catching_up: the targets whose flow was deployed or resumed; they run a few at a time (8.18).
    """

    targets: dict[Target, None] = field(default_factory=dict[Target, None])
    flows: dict[int, None] = field(default_factory=dict[int, None])
    assets: dict[str, None] = field(default_factory=dict[str, None])
    instants: dict[datetime, None] = field(default_factory=dict[datetime, None])
    catching_up: dict[Target, None] = field(default_factory=dict[Target, None])

    def add(self, target: Target) -> None:
        """Add a target."""
        self.targets[target] = None
        self.flows[target.consumer] = None

    def add_catching_up(self, target: Target) -> None:
        """Add a target whose flow was deployed, or paused until now."""
        self.add(target)
        self.catching_up[target] = None


MOST_CATCHING_UP = 16
# A transaction judges at most so many targets that a deploy concerns, so that others need not wait for long.
MOST_JUDGED = 500


class FreshnessState:
    """The state of chapter 8.

    Parameters:
        resolve: returns the URI of a token; `None` for a name that nobody has.
        tokens_of: returns the tokens of a URI, by which mappers are found.
        place: returns the sequence of the newest update in the ledger.
        in_memory: whether this state has to remember every update, because nobody else does. In a ledger, it
            knows flows only if one of them keeps its outputs up to date, or declares a freshness policy, and compares
            only what that concerns.

    Attributes:
        agenda: what the next pass has to look at.
        compared: the assets whose updates a ledger compares; empty in memory, where all are.
        order: the place of this unit of work among all; in memory, that of the last moment.
        most_catching_up: how many targets of a flow run at a time because `catchup` asks for them; `None` for any
            number (8.18).
        most_judged: how many targets a pass judges at most because their flow was deployed or resumed; `None` for any
            number.
    """

    def __init__(
        self,
        source: FreshnessSource,
        resolve: Resolve,
        tokens_of: TokensOf,
        place: Callable[[], int],
        *,
        in_memory: bool = True,
    ) -> None:
        self._is_all = in_memory
        self._source = source
        self.place = place
        self.resolve = resolve
        self.changes = FreshnessChanges()
        self._tokens_of = tokens_of
        self.graph = source.graph(resolve, tokens_of)
        self._forget()
        self.agenda = Agenda()
        self.order = 0
        self.most_catching_up = None if in_memory else MOST_CATCHING_UP
        self.most_judged = None if in_memory else MOST_JUDGED
        self.compared = frozenset[str]() if in_memory else self.graph.compared()

    def moment(self, now: datetime) -> Moment:
        """Return a moment: now, after the newest update in the ledger and all earlier moments."""
        self.order += self._is_all
        return Moment(now, self.place(), self.order)

    @property
    def compares(self) -> bool:
        """True if anything is compared: in memory always, in a ledger if something has to be kept fresh."""
        return self._is_all or bool(self.graph.all())

    def concerns(self, uri: str) -> bool:
        """Return True if the updates of an asset are compared."""
        return self._is_all or uri in self.compared

    def admit(self, consumer: Consumer) -> bool:
        """Prepare for a consumer that is deployed or changed; return False if nothing is compared."""
        if self.compares:
            return True
        if consumer.schedule.keeping is None and not consumer.options.data.policies:
            return False
        self.admit_all()
        return True

    def admit_all(self) -> None:
        """Know all flows, because one of them is compared or backfilled."""
        if not self.compares:
            self.graph = self._source.whole_graph(self.resolve, self._tokens_of)

    def put(self, consumer: Consumer) -> FlowNode | None:
        """Add a flow to the graph, or replace it; return `None` if there is nothing that it could be compared with."""
        old = self.graph.find(consumer.id)
        self.graph.put(consumer)
        self._follow_graph([old])
        return self.graph.find(consumer.id)

    def remove(self, number: int) -> None:
        """Take a flow out of the graph."""
        old = self.graph.find(number)
        self.graph.remove(number)
        self._follow_graph([old])

    def made_from(self, uri: str, inputs: Iterable[str]) -> None:
        """Remember what an asset was made from, also if its maker does not read that: it tells how old it is (8.12)."""
        new = self.graph.add_earlier_inputs(uri, inputs)
        if new:
            self.changes.earlier_inputs |= dict.fromkeys((uri, each) for each in new)
            self._follow_graph()

    def renamed(self, name: str) -> None:
        """Resolve references to a name again, because its asset became known."""
        old = self.graph.renamed(name)
        if old:
            self._follow_graph(old)

    def begin(self) -> None:
        """Begin a unit of work: clear the changes of the one before, if something is compared."""
        if self.compares or self.changes.flows or self.changes.is_idle:
            self.changes.begin()

    def idle(self) -> None:
        """Clear the clock if nothing is compared: no pass would follow what it finds due."""
        if not self.compares:
            self.changes.is_idle = True

    def renew(self) -> None:
        """End a unit of work: what it changed is written. Only the graph is remembered."""
        if self.compares:
            self._forget()

    def _forget(self) -> None:
        """Forget everything but the graph: it is in the source, and other processes may change it."""
        source, changes = self._source, self.changes
        self.updates = Updates(source, changes)
        self.readings = Readings(source, changes)
        self.runs = Runs(source, changes)
        self.targets = Targets(source, changes)
        self.policies = Policies(source, changes)
        self.backfills = Backfills(source, changes)
        self._flows = Mirror[int, FlowRecord].one_by_one(source.flow_record)

    def _follow_graph(self, old: Iterable[FlowNode | None] = ()) -> None:
        """Follow a change of the graph: compare what it concerns from now on; with nothing to keep fresh, nothing.

        Parameters:
            old: the flows as they were that were replaced or removed.
        """
        for node in old:
            for uri, depends in node.outputs.items() if node is not None else ():
                self.made_from(uri, depends)
        if self._is_all:
            return
        if not (self.graph.has_keepers or self.graph.has_policies or self.backfills.live()):
            for node in list(self.graph.all()):
                self.graph.remove(node.id)
                self.save_flow(node.id, None)
            self.idle()
        compared = self.graph.compared()
        new = sorted(compared - self.compared)
        self.compared = compared
        if new:
            makers = {uri: {each.consumer.deployment_id: each.id for each in self.graph.makers(uri)} for uri in new}
            self._source.track(makers)

    def keys_set_aside(self, number: int) -> Sequence[str]:
        """Return the target keys of a flow that this unit of work leaves to later ones to judge."""
        others = self.targets.not_set_aside(number)
        return () if others is None else [key for key in self.readings.targets(number) if key not in others]

    def flow_record(self, number: int) -> FlowRecord | None:
        """Return the record of a flow, or `None` if the flow is unknown."""
        return self._flows[number]

    def save_flow(self, number: int, record: FlowRecord | None) -> None:
        """Save the record of a flow; `None` deletes it."""
        self._flows[number] = self.changes.flows[number] = record
