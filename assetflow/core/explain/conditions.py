"""Explain a condition: what satisfies each of its leaves, or what the leaf waits for.

The tree is given as rows in reading order, each with its depth, because a schedule may be nested deeper than JSON and
Python's recursion allow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Literal, cast
from uuid import UUID

from assetflow.core.explain.facts import KnownNames, QueuedEvents, first_prefix, pending_of
from assetflow.core.grouping import grouped
from assetflow.core.partitions import PartitionMapper, RollupMapper
from assetflow.core.partitions.base import targets_or_none
from assetflow.core.rules.evaluation import Pending, Reach, in_order, is_complete
from assetflow.core.rules.timers import mapper_of_leaf
from assetflow.core.shapes import As, TextOrNull, called, shape
from assetflow.core.values.conditions import Gate, GateKind, Leaf, Token, join_gate
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.words import at, count, since, some
from assetflow.errors import MappingError


@dataclass(frozen=True)
class RollupKeys:
    """The upstream keys of one rolled-up asset for one target key.

    Attributes:
        received, missing: the awaited keys that have come, and those that have not, sorted.
        needed: the number of keys that are enough.
        readable: the mapper can read the target key back. If it cannot, no keys are enough.
    """

    received: tuple[str, ...]
    missing: tuple[str, ...] = ()
    needed: int = 0
    readable: bool = True


@shape
class LeafKeys:
    """The upstream keys of one leaf of the condition for one target key."""

    leaf: str = field(metadata=called("asset"))
    """What texts for people call the leaf."""
    received: tuple[str, ...]
    """The keys that have come, sorted."""
    missing: tuple[str, ...]
    """The keys that have not come, sorted; empty for a leaf that is not rolled up."""
    needed: int
    """The number of keys that are enough."""


def rollup_keys(mapper: RollupMapper, target_key: str, keys: Collection[str]) -> RollupKeys:
    """Return which keys a roll-up has received for a target key, and which it still waits for.

    Parameters:
        keys: the keys of the asset's queued events.
    """
    try:
        awaited = mapper.awaited(target_key)
    except MappingError:
        return RollupKeys(tuple(sorted(keys)), readable=False)
    received = awaited.intersection(keys)
    needed = mapper.wait_policy.needed(len(awaited))
    return RollupKeys(tuple(sorted(received)), tuple(sorted(awaited - received)), needed)


def leaf_keys(
    schedule: Schedule, target_key: str, pending: Pending, tokens_of: Callable[[str], frozenset[Token]]
) -> tuple[LeafKeys, ...]:
    """Return the upstream keys of a pending partition, leaf by leaf.

    Parameters:
        pending: each URI with the keys of its queued events.
        tokens_of: returns the tokens of a URI.
    """
    condition, parts = schedule.condition, schedule.partitioning
    if condition is None or parts is None:
        return ()
    found: dict[Token, LeafKeys] = {}
    for leaf in condition.leaves:
        uris = [uri for uri in pending if leaf.token in tokens_of(uri)]
        keys = {key for uri in uris for key in pending[uri] if key is not None}
        mapper = parts.mapper_for(tokens_of(uris[0])) if uris else mapper_of_leaf(parts, leaf)
        is_rolled_up = isinstance(mapper, RollupMapper)
        told = rollup_keys(mapper, target_key, keys) if is_rolled_up else RollupKeys(tuple(sorted(keys)), needed=1)
        found[leaf.token] = LeafKeys(leaf.label, told.received, told.missing, told.needed)
    return tuple(found.values())


Received = Mapping[str, Collection[str]]


def targets_of_keys(mapper: PartitionMapper, keys: Iterable[str]) -> dict[str, list[str]]:
    """Return the target keys of some keys, each with its keys. A key that the mapper cannot read has none."""
    return grouped((target, key) for key in keys for target in targets_or_none(mapper, key))


def awaited_keys(mapper: PartitionMapper, keys_of: Mapping[str, Collection[str]], received: Received) -> set[str]:
    """Return those of some absent keys that a consumer waits for.

    Parameters:
        keys_of: the absent keys of each target key.
        received: the pending target keys, each with the keys of the asset that are queued for it.
    """
    found: set[str] = set()
    for target, queued in received.items():
        absent = keys_of.get(target, ())
        if isinstance(mapper, RollupMapper):
            rolled = rollup_keys(mapper, target, queued)
            if len(rolled.received) < rolled.needed:
                found |= set(rolled.missing).intersection(absent)
        elif len(absent) == 1 and not queued:
            # Of several keys any would do, so that none of them is missing.
            found |= set(absent)
    return found


RowKind = GateKind | Literal["asset", "name", "alias"]
RowState = Literal["satisfied", "waiting", "never"]

_LEAF_KINDS: dict[str, RowKind] = {"uri": "asset", "name": "name", "alias": "alias"}


def _id_of(event: AssetEvent | None) -> UUID | None:
    return None if event is None else event.id


EventById = Annotated[AssetEvent, As(UUID | None, _id_of)]
"""An event that is its id in JSON."""


@shape
class ConditionRow:
    """A gate or a leaf of a condition; the members of a gate follow it with a greater depth."""

    depth: int
    kind: RowKind
    """`all`, `any`, `at_least`, `times`, `within` and `since` for gates; `asset` (by URI), `name` (a reference by name)
    and `alias` for leaves."""
    value: TextOrNull
    """The URI, name or alias of a leaf."""
    label: str
    """What texts for people call the node."""
    state: RowState
    """`never` means that nothing can satisfy it as things stand."""
    words: str
    """Its state in words, as a sentence without a subject."""
    since: datetime | None = None
    """Since when it is satisfied or waits; null if that is not known."""
    satisfied_by: EventById | None = None
    """The event that satisfied a leaf."""
    queued: int | None = None
    """How many queued events match a leaf."""
    members: int | None = None
    """How many members a gate has."""
    satisfied_members: int | None = None
    received: tuple[str, ...] = ()
    """The upstream keys that have come, of a rolled-up leaf that is not complete."""
    missing: tuple[str, ...] = ()

    @property
    def is_gate(self) -> bool:
        return self.kind not in ("asset", "name", "alias")


def condition_rows(
    schedule: Schedule, queue: QueuedEvents, names: KnownNames, waiting_since: datetime | None
) -> tuple[ConditionRow, ...]:
    """Return the rows of a schedule's condition, in reading order; an empty list without a condition.

    Parameters:
        queue: the queued events, of one target key if the schedule is partitioned.
        names: the names and links that the condition needs.
        waiting_since: since when events count: the last decision, or the creation of the consumer.
    """
    if schedule.condition is None:
        return ()
    leaves = _Leaves(schedule, queue, names, waiting_since)
    time_gates = _time_gates(schedule, queue, names)
    postfix = schedule.condition.postfix
    rows = {place: leaves.row(node) for place, node in enumerate(postfix) if not isinstance(node, Gate)}
    for place, gate, members in schedule.condition.gates:
        rows[place] = _gate(gate, [rows[each] for each in members], waiting_since, time_gates.get(place))
    children = {place: members for place, _, members in schedule.condition.gates}
    return tuple(_reading_order(rows, children, len(postfix) - 1))


def _reading_order(
    rows: Mapping[int, ConditionRow], children: Mapping[int, Sequence[int]], root: int
) -> Iterator[ConditionRow]:
    """Yield rows from the root down, each with its depth."""
    waiting = [(root, 0)]
    while waiting:
        place, depth = waiting.pop()
        yield _at_depth(rows[place], depth)
        waiting.extend((child, depth + 1) for child in reversed(children.get(place, ())))


def _at_depth(row: ConditionRow, depth: int) -> ConditionRow:
    # This is a quicker `dataclasses.replace`, because a schedule may have thousands of leaves.
    copy = object.__new__(ConditionRow)
    copy.__dict__.update(row.__dict__, depth=depth)
    return copy


def _time_gates(schedule: Schedule, queue: QueuedEvents, names: KnownNames) -> Mapping[int, bool]:
    """Return for the place of each time gate in postfix order whether it holds."""
    if schedule.condition is None or not schedule.condition.has_time_gates:
        return {}
    return Reach(schedule, queue.target_key, in_order(queue.events), names.tokens_of).time_gates


def _gate(
    gate: Gate, members: Sequence[ConditionRow], waiting_since: datetime | None, time_gate: bool | None
) -> ConditionRow:
    satisfied = [row for row in members if row.state == "satisfied"]
    never = [row for row in members if row.state == "never"]
    held = [row.since for row in satisfied if row.since is not None]
    if time_gate is not None:
        needed, label, holds, moment = 1, join_gate(gate, ["these"]), time_gate, None
    elif gate.kind == "times":
        needed, label, moment = 1, join_gate(gate, ["this"]), None
        holds = bool(satisfied) and (members[0].queued or 0) >= cast("int", gate.argument)
    else:
        needed = gate.needed
        label = {"all": "all of these", "any": "any of these"}.get(gate.kind, f"{needed} of these")
        holds = len(satisfied) >= needed
        moment = sorted(held)[needed - 1] if 0 < needed <= len(held) else None
    hopeless = len(members) - len(never) < needed
    state: RowState = "satisfied" if holds else "never" if hopeless else "waiting"
    moment = moment if holds else waiting_since
    words = _gate_words(gate, state, members, moment)
    return ConditionRow(
        0, gate.kind, "", label, state, words, moment, members=len(members), satisfied_members=len(satisfied)
    )


def _gate_words(gate: Gate, state: RowState, members: Sequence[ConditionRow], moment: datetime | None) -> str:
    if not members:
        return "an empty list: true by itself, but an update has to come" if gate.kind == "all" else "nothing: never"
    if gate.kind == "times":
        of = f"{members[0].queued or 0} of {gate.argument} updates"
    elif gate.is_time_gate:
        together = "of each other" if gate.kind == "within" else "of one period"
        of = f"updates {together} satisfy it" if state == "satisfied" else f"no updates {together} satisfy it yet"
    else:
        of = f"{sum(row.state == 'satisfied' for row in members)} of {len(members)} updated"
    if state == "satisfied":
        return f"{of}: satisfied{since(moment)}"
    return f"{of}: can never be satisfied" if state == "never" else f"{of}: waiting"


class _Leaves:
    """Explains the leaves of a condition by the queued events."""

    def __init__(
        self, schedule: Schedule, queue: QueuedEvents, names: KnownNames, waiting_since: datetime | None
    ) -> None:
        self._schedule = schedule
        self._target_key = queue.target_key
        self._names = names
        self._waiting_since = waiting_since
        self._events = grouped((event.uri, event) for event in queue.events)
        self._counts = {uri: len(events) for uri, events in self._events.items()} | dict(queue.counts or {})
        self._tokens = {uri: names.tokens_of(uri) for uri in self._events}
        self._uris = grouped((token, uri) for uri, tokens in self._tokens.items() for token in tokens)

    def row(self, leaf: Leaf) -> ConditionRow:
        uris = self._uris.get(leaf.token, [])
        queued = sum(self._counts[uri] for uri in uris)
        completing = [event for uri in uris if (event := self._completing(uri)) is not None]
        first = min(completing, key=lambda event: event.sequence or 0, default=None)
        if first is not None:
            return self._satisfied(leaf, first, queued)
        uri = uris[0] if uris else self._uri_of(leaf.token)
        mapper = None if uri is None else self._rollup(uri)
        if uri is None or mapper is None or self._target_key is None:
            return self._waiting(leaf)
        keys = {event.partition_key for event in self._events.get(uri, ()) if event.partition_key is not None}
        return self._collecting(leaf, rollup_keys(mapper, self._target_key, keys), queued)

    def _uri_of(self, token: Token) -> str | None:
        """Return the asset of a leaf that has no queued event; `None` for an alias or an unknown name."""
        if token.kind == "uri":
            return token.value
        return self._names.owners.get(token.value) if token.kind == "name" else None

    def _rollup(self, uri: str) -> RollupMapper | None:
        parts = self._schedule.partitioning
        mapper = None if parts is None else parts.mapper_for(self._names.tokens_of(uri))
        return mapper if isinstance(mapper, RollupMapper) else None

    def _completing(self, uri: str) -> AssetEvent | None:
        """Return the event with which an asset began to count as updated, or `None` if it does not yet."""
        events = self._events[uri]
        tokens = self._tokens[uri]
        if not self._schedule.has_rollup:
            return events[0]
        last = first_prefix(
            events, lambda part: is_complete(self._schedule, self._target_key, pending_of(part)[uri], tokens)
        )
        return None if last is None else events[last - 1]

    def _satisfied(self, leaf: Leaf, event: AssetEvent, queued: int) -> ConditionRow:
        through = "" if leaf.token == Token("uri", event.uri) else f" of {self._names.name_of(event.uri)}"
        key = "" if event.partition_key is None else f" (key {event.partition_key})"
        more = f", {queued - 1} more queued" if queued > 1 else ""
        when = "" if event.recorded is None else f", recorded {at(event.recorded)}"
        words = f"satisfied by event {event.id}{through}{key}{when}{more}"
        return self._new(leaf, "satisfied", words, event.recorded, event, queued)

    def _collecting(self, leaf: Leaf, keys: RollupKeys, queued: int) -> ConditionRow:
        """Return the row of a rolled-up leaf that lacks some of its keys."""
        if keys.readable:
            awaited = len(keys.received) + len(keys.missing)
            have = f"{len(keys.received)} of {count(awaited, 'key')} received, {keys.needed} needed"
            words = f"waiting: {have}; missing {some(keys.missing)}"
        else:
            words = f"waiting: its mapper cannot read the target key {self._target_key!r} back, so nothing is enough"
        row = self._new(leaf, "waiting", words, self._waiting_since, None, queued)
        return replace(row, received=keys.received, missing=keys.missing)

    def _waiting(self, leaf: Leaf) -> ConditionRow:
        kind, value = leaf.token
        if kind == "name" and value not in self._names.owners:
            words = f"no asset is named {value!r}: as long as that is so, it is never satisfied"
            return self._new(leaf, "never", words, None)
        if kind == "alias":
            linked = sorted(map(self._names.name_of, self._names.links.get(value, ())))
            words = (
                f"waiting for an update of an asset linked to this alias ({some(linked)})"
                if linked
                else "waiting for a first update through this alias: no asset is linked to it yet"
            )
        elif kind == "name":
            words = f"waiting for an update of {self._names.name_of(self._names.owners[value])}"
        else:
            words = "waiting for an update"
        return self._new(leaf, "waiting", words, self._waiting_since)

    def _new(
        self,
        leaf: Leaf,
        state: RowState,
        words: str,
        moment: datetime | None,
        event: AssetEvent | None = None,
        queued: int = 0,
    ) -> ConditionRow:
        kind, value = leaf.token
        return ConditionRow(
            0, _LEAF_KINDS[kind], value, self._names.label_of(leaf), state, words, moment, event, queued
        )
