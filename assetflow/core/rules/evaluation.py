"""Evaluate a condition over queued events (contract 4.1, 5.2). Nothing else in assetflow does it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

from assetflow.core.partitions import RollupMapper, check_key
from assetflow.core.time.timetables import Timetable
from assetflow.core.values.conditions import Condition, Gate, Token, fold_condition
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedules import Schedule
from assetflow.errors import InvalidEvent, MappingError

Pending = Mapping[str, Mapping[str | None, int]]
"""The queued events of one consumer and target key in short: URI to key to the number of events."""

TokensOf = Callable[[str], frozenset[Token]]


def holds(condition: Condition, facts: Mapping[Token, int]) -> bool:
    """Return True if a condition holds, whenever the events came. AND of nothing is true, OR of nothing is false.

    Parameters:
        facts: how many queued events match each token; tokens without any may be left out.
    """
    return bool(fold_condition(condition, lambda leaf: facts.get(leaf.token, 0), _gate_holds))


def _gate_holds(gate: Gate, members: Sequence[int]) -> bool:
    if gate.kind == "all" or gate.is_time_gate:
        return all(members)
    if gate.kind == "any":
        return any(members)
    if gate.kind == "times":
        return members[0] >= cast("int", gate.argument)
    return sum(map(bool, members)) >= cast("int", gate.argument)


def facts_of(schedule: Schedule, target_key: str | None, pending: Pending, tokens_of: TokensOf) -> dict[Token, int]:
    """Return how many queued events match each token; those of a rolled-up asset count when it is complete."""
    facts: dict[Token, int] = {}
    for uri, keys in pending.items():
        tokens = tokens_of(uri)
        if not schedule.has_rollup or is_complete(schedule, target_key, keys, tokens):
            count = sum(keys.values())
            for token in tokens:
                facts[token] = facts.get(token, 0) + count
    return facts


def is_complete(
    schedule: Schedule, target_key: str | None, keys: Collection[str | None], tokens: frozenset[Token]
) -> bool:
    """Return True if the events of one asset are enough for the target key. Contract 5.2.

    One event is enough, unless the asset is rolled up: then its wait policy must be met.

    Parameters:
        keys: the keys of the asset's queued events.
        tokens: the tokens of the asset, by which its mapper is found.
    """
    if schedule.partitioning is None or target_key is None:
        return True
    mapper = schedule.partitioning.mapper_for(tokens)
    if not isinstance(mapper, RollupMapper):
        return True
    return mapper.is_met(target_key, [key for key in keys if key is not None])


def evaluate(schedule: Schedule, target_key: str | None, pending: Pending, tokens_of: TokensOf) -> bool:
    """Return True if the schedule's condition holds over the queued events. Without any it does not. Contract 4.1.

    It is not asked when the events came: where that counts, `Reach` tells more.
    """
    if schedule.condition is None or not pending:
        return False
    # Most events meet a condition that still lacks an asset. This test finds that without looking at each leaf.
    if not pending.keys() >= schedule.condition.needed_uris:
        return False
    if schedule.condition.needs_nothing_else and not schedule.has_rollup:
        return True
    return holds(schedule.condition, facts_of(schedule, target_key, pending, tokens_of))


def target_keys_of(consumer: Consumer, event: AssetEvent, tokens: frozenset[Token]) -> Sequence[str | None]:
    """Return the target keys of an event for a consumer, each once; `(None,)` for a plain consumer.

    Contract 5.1.

    Parameters:
        tokens: the tokens of the event's asset, by which its mapper is found.

    Raises:
        MappingError: the mapper cannot read the event's key, or gives too many target keys or an invalid one. Contract
            5.4.
    """
    if event.partition_key is None:
        return (None,)
    partitioning = consumer.schedule.partitioning
    if partitioning is None:
        return (None,)
    keys = tuple(dict.fromkeys(partitioning.mapper_for(tokens).to_downstream(event.partition_key)))
    for key in keys:
        _check_target_key(key, event.partition_key)
    return keys


def wanted_keys(consumer: Consumer, event: AssetEvent, tokens: frozenset[Token]) -> Sequence[str | None]:
    """Return the keys under which a consumer takes an event: no keys if it does not want the event or cannot map it."""
    if not consumer.wants_key(event.partition_key):
        return ()
    try:
        return target_keys_of(consumer, event, tokens)
    except MappingError:
        return ()


def _check_target_key(key: str, of: str) -> None:
    """Check a target key as any partition key: it becomes the key of the run's own updates. Contract 2.5."""
    try:
        check_key(key)
    except InvalidEvent as error:
        raise MappingError(
            f"The partition key {of!r} gives an invalid target key: {error.message}",
            fix="Change the formats of the mapper, or the key",
            rule="5.4",
        ) from error


_NEVER = -1
"""The node does not hold, from whichever event on."""
_ALWAYS = 1 << 62
"""The node holds over no events at all."""


def in_order(events: Sequence[AssetEvent]) -> list[AssetEvent]:
    """Return events by the instant at which each was recorded, and by their place in the ledger."""
    return sorted(events, key=lambda event: (instant_of(event), event.sequence))


def instant_of(event: AssetEvent) -> datetime:
    """Return the instant at which a recorded event became durable. Contract 9.6."""
    assert event.recorded is not None, "only recorded events are queued"
    return event.recorded


class Reach:
    """From which of the queued events of one target key on a condition holds.

    Parameters:
        schedule: its condition is asked about; its mappers tell which assets are rolled up.
        target_key: the key of the queue; `None` for a plain consumer.
        events: the queued events, as `in_order` gives them. `read` takes those that come later.
        tokens_of: the tokens under which an asset is known now.

    Attributes:
        completing: the event with which the condition holds for the first time, if one takes the events oldest first.
    """

    def __init__(
        self, schedule: Schedule, target_key: str | None, events: Iterable[AssetEvent], tokens_of: TokensOf
    ) -> None:
        assert schedule.condition is not None, "only a schedule on assets has a queue"
        self.condition: Condition = schedule.condition
        self.completing: AssetEvent | None = None
        self._schedule = schedule
        self._rolled_up_key = target_key if schedule.has_rollup else None
        self._tokens_of = tokens_of
        self._leaves: dict[str, Sequence[int]] = {}
        self._instants: list[datetime] = []
        # For each place in postfix order, the number of the latest event from which on the node holds.
        self._latest = [_NEVER] * len(self.condition.postfix)
        self._newest: dict[int, deque[int]] = {}
        self._rolled_up: dict[int, _RolledUp] = {}
        self._judge_gates()
        for event in events:
            if not self.read(event):
                break

    def read(self, event: AssetEvent) -> bool:
        """Read the next event; return False if the condition and each time gate hold, so that none is needed."""
        if self.holds and self.is_settled:
            return False
        self._read(event)
        return True

    @property
    def holds(self) -> bool:
        """True if the condition holds over all events."""
        return self._latest[-1] != _NEVER

    @property
    def is_settled(self) -> bool:
        """For each time gate, True if it holds; later events never undo that."""
        return _NEVER not in [self._latest[place] for place in self.condition.time_gate_places]

    @property
    def time_gates(self) -> Mapping[int, bool]:
        """Return for the place of each time gate in postfix order whether it holds over all events."""
        return {place: self._latest[place] != _NEVER for place in self.condition.time_gate_places}

    def too_old(self, event: AssetEvent, margin: timedelta) -> Iterator[datetime | None]:
        """Yield, for each leaf that an event matches, when the event becomes too old for it.

        That is the first instant at which it is too old for a time gate around the leaf that does not hold; `None` if
        there is no such gate, so that the event may still count.

        Parameters:
            margin: how long after the end of a span an event is too old for it.
        """
        for leaf in self._leaves_of(event):
            gates = self.condition.time_gates_around[leaf]
            lost = [self._end_for(event, place, margin) for place in gates if self._latest[place] == _NEVER]
            yield min(lost, default=None)

    def _leaves_of(self, event: AssetEvent) -> Sequence[int]:
        uri = event.asset.uri
        if uri not in self._leaves:
            places = self.condition.leaf_places
            self._leaves[uri] = [place for token in self._tokens_of(uri) for place in places.get(token, ())]
        return self._leaves[uri]

    def _end_for(self, event: AssetEvent, place: int, margin: timedelta) -> datetime:
        gate = cast("Gate", self.condition.postfix[place])
        return end_of(gate, instant_of(event), margin)

    def _read(self, event: AssetEvent) -> None:
        """Read the next event, and work out what holds now."""
        number, held = len(self._instants), self.holds
        self._instants.append(instant_of(event))
        for place in self._leaves_of(event):
            self._latest[place] = self._read_leaf(place, number, event)
        self._judge_gates()
        if self.holds and not held:
            self.completing = event

    def _read_leaf(self, place: int, number: int, event: AssetEvent) -> int:
        """Return the latest event from which enough events match a leaf."""
        count = self.condition.counted.get(place, 1)
        if self._rolled_up_key is not None:
            if place not in self._rolled_up:
                self._rolled_up[place] = _RolledUp(count, self._schedule, self._rolled_up_key, self._tokens_of)
            return self._rolled_up[place].add(number, event)
        if count == 1:
            return number
        newest = self._newest.setdefault(place, deque(maxlen=count))
        newest.append(number)
        return newest[0] if len(newest) == count else _NEVER

    def _judge_gates(self) -> None:
        latest = self._latest
        for place, gate, members in self.condition.gates:
            if gate.kind == "all":
                latest[place] = min([latest[each] for each in members], default=_ALWAYS)
            elif gate.kind == "any":
                latest[place] = max([latest[each] for each in members], default=_NEVER)
            elif gate.kind == "times":
                latest[place] = latest[members[0]]
            elif gate.kind == "at_least":
                latest[place] = sorted([latest[each] for each in members])[-cast("int", gate.argument)]
            elif latest[members[0]] > latest[place] and self._in_one(gate, latest[members[0]]):
                # What a time gate held over once, it holds over for ever: a later event takes nothing away.
                latest[place] = latest[members[0]]

    def _in_one(self, gate: Gate, first: int) -> bool:
        """Return True if the events from one on, up to the newest, lie within one stretch or period of a time gate."""
        if first == _ALWAYS:
            return True
        since, newest = self._instants[first], self._instants[-1]
        end = end_of(gate, since)
        return newest <= end if isinstance(gate.argument, timedelta) else newest < end


class _RolledUp:
    """The events that match one leaf, where those of a rolled-up asset count when its wait policy is met (9.2).

    Parameters:
        count: how many are needed at least.
    """

    def __init__(self, count: int, schedule: Schedule, target_key: str, tokens_of: TokensOf) -> None:
        self._count = count
        self._schedule = schedule
        self._target_key = target_key
        self._tokens_of = tokens_of
        self._events: deque[tuple[int, AssetEvent]] = deque()

    def add(self, number: int, event: AssetEvent) -> int:
        """Add the next event, and return the number of the latest one from which on there are enough."""
        self._events.append((number, event))
        if not self._are_enough():
            return _NEVER
        latest = self._events[0]
        while self._are_enough():
            latest = self._events.popleft()
        self._events.appendleft(latest)
        return latest[0]

    def _are_enough(self) -> bool:
        found: dict[str, list[str]] = {}
        for _, event in self._events:
            found.setdefault(event.uri, []).append(event.partition_key or "")
        return sum(len(keys) for uri, keys in found.items() if self._counts(uri, keys)) >= self._count

    def _counts(self, uri: str, keys: Sequence[str]) -> bool:
        partitioning = self._schedule.partitioning
        mapper = None if partitioning is None else partitioning.mapper_for(self._tokens_of(uri))
        return not isinstance(mapper, RollupMapper) or mapper.is_met(self._target_key, keys)


def end_of(gate: Gate, moment: datetime, margin: timedelta = timedelta()) -> datetime:
    """Return when the stretch or period of a time gate ends that begins with a moment, or that it belongs to.

    Parameters:
        margin: how long after the end of a span an event is too old for it.
    """
    if isinstance(gate.argument, timedelta):
        return moment + gate.argument + margin
    return period_end(cast("Timetable", gate.argument), moment)


def period_end(timetable: Timetable, moment: datetime) -> datetime:
    """Return when the period of a timetable ends that a moment belongs to; the first moment belongs to it. 9.4."""
    tick = timetable.next_after(moment)
    return _LAST if tick is None else tick.time


_LAST = datetime.max.replace(tzinfo=UTC)
