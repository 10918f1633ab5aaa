"""The checks of the lint that need no server and no source: of one schedule, of keys, and of assets over all flows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations
from typing import cast

from assetflow.core.lint.source import Finding, SeenFlow
from assetflow.core.partitions import (
    AllowedKeyMapper,
    FixedKeyMapper,
    PartitionMapper,
    RollupMapper,
    StaticMapper,
    TemporalMapper,
)
from assetflow.core.time.timetables import CronPartitionTimetable
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.conditions import Condition, Gate, Leaf, Token, fold_condition
from assetflow.core.wire.declarations import resolved, uris_of_names
from assetflow.errors import MappingError

# The similarity, at most 1, from which one name may be a typing error for another.
_ALIKE = 0.85


@dataclass(frozen=True)
class Assets:
    """The assets of some flows.

    Parameters:
        external: patterns of URIs and names that something outside of the flows updates.
        deployed: URIs and names that a ledger knows.
    """

    flows: Sequence[SeenFlow]
    external: Collection[str] = ()
    deployed: Collection[str] = ()

    @cached_property
    def _uris(self) -> Mapping[str, str]:
        return uris_of_names(flow.declaration for flow in self.flows)

    @cached_property
    def makers(self) -> Mapping[Token, Sequence[SeenFlow]]:
        """The flows that update each asset and alias."""
        found: dict[Token, list[SeenFlow]] = {}
        for flow in self.flows:
            for token in dict.fromkeys(resolved(outlet.token, self._uris) for outlet in flow.declaration.produces):
                found.setdefault(token, []).append(flow)
        return found

    @cached_property
    def _watched(self) -> frozenset[Token]:
        assets = (asset for flow in self.flows for asset in flow.declaration.assets)
        return frozenset(asset.token for asset in assets if asset.watchers)

    def check(self) -> Iterator[Finding]:
        """Find assets that nobody updates, that several flows update, and aliases that nobody uses."""
        for flow in self.flows:
            yield from self._check_sources(flow)
        for token, makers in self.makers.items():
            if token.kind == "alias" and token not in self._used:
                message = f"it updates the alias {token.value!r}, which no flow is scheduled on or reads"
                yield makers[0].finding("AF013", message, "Schedule a flow on it, or leave it out of the outlets")
            for maker in makers[1:] if token.kind != "alias" else ():
                message = f"it updates {token.value}, and so does {makers[0].name} ({makers[0].file})"
                yield maker.finding("AF008", message, "Let one flow update it; if both are meant, ignore AF008")

    @cached_property
    def _used(self) -> frozenset[Token]:
        declared = [flow.declaration for flow in self.flows]
        read = {outlet.token for each in declared for outlet in each.reads if isinstance(outlet, AssetAlias)}
        return frozenset(read).union(*(each.options.schedule.tokens for each in declared))

    def _check_sources(self, flow: SeenFlow) -> Iterator[Finding]:
        schedule = flow.declaration.options.schedule
        named = schedule.tokens if schedule.keeping is None else schedule.keeping.start_tokens
        for token in sorted(named):
            known = resolved(token, self._uris)
            labels = {token.value, known.value}
            if known in self.makers or known in self._watched or self._is_external(labels):
                continue
            what = {"uri": "the asset", "name": "an asset called", "alias": "the alias"}[token.kind]
            message = f"it is scheduled on {what} {token.value}, which no flow here updates{self._meant(token)}"
            yield flow.finding("AF004", message, f'Correct the name, or list it as external = ["{token.value}"]')

    def _is_external(self, labels: Collection[str]) -> bool:
        return any(fnmatchcase(label, pattern) for label in labels for pattern in self.external)

    def _meant(self, token: Token) -> str:
        made = {each.value for each in self.makers if (each.kind == "alias") == (token.kind == "alias")}
        outlets = (each for flow in self.flows for each in flow.declaration.produces if isinstance(each, Asset))
        names = {each.name for each in outlets} if token.kind == "name" else set[str]()
        near = get_close_matches(token.value, sorted({*made, *names, *self.deployed} - {token.value}), 1, _ALIKE)
        return f". Did you mean {near[0]}?" if near else ""


# Larger conditions are made by a program, and comparing all their branches takes long.
MOST_NODES = 300


def check_condition(flow: SeenFlow) -> Iterator[Finding]:
    """Find a condition that can never hold, or branches of an OR that change nothing."""
    condition = flow.declaration.options.schedule.condition
    if condition is None:
        return
    can_hold = fold_condition(condition, lambda _: True, lambda gate, members: sum(members) >= _needed(gate))
    if not can_hold or not condition.tokens:
        message = "its condition can never hold: a part of it names no asset"
        yield flow.finding("AF006", message, "Name assets that somebody updates")
    if len(condition.postfix) <= MOST_NODES:
        for useless, other in useless_branches(condition):
            yield flow.finding(
                "AF007",
                f"in an OR, {useless.describe()} changes nothing: {other.describe()} holds whenever it does",
                "Leave it out, or write & where both are needed",
            )


def useless_branches(condition: Condition) -> Iterator[tuple[Condition, Condition]]:
    """Yield the branches of ORs that imply another branch, each with that one."""
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        members = cast("tuple[Condition, ...]", tuple(node.members))
        waiting += members
        if node.gate is None or node.gate.kind != "any":
            continue
        for place, branch in enumerate(members):
            # Of two that imply each other, the later one is useless.
            others = (*members[:place], *(each for each in members[place + 1 :] if not implies(each, branch)))
            if (other := next((each for each in others if implies(branch, each)), None)) is not None:
                yield branch, other


def implies(one: Condition, other: Condition) -> bool:
    """Return True if the second condition certainly holds whenever the first one does."""
    if one == other or (isinstance(one, Leaf) and isinstance(other, Leaf) and one.token == other.token):
        return True
    gate = other.gate
    if gate is not None and not gate.is_time_gate and gate.kind != "times":
        held = sum(implies(one, cast("Condition", member)) for member in other.members)
        if held >= _needed(gate):
            return True
    return _follows_from_members(one, other)


def _follows_from_members(one: Condition, other: Condition) -> bool:
    gate, members = one.gate, cast("tuple[Condition, ...]", tuple(one.members))
    if gate is None or not members:
        return False
    if gate.kind == "all":
        return any(implies(member, other) for member in members)
    if gate.kind in ("any", "at_least"):
        return all(implies(member, other) for member in members)
    if other.gate is not None and other.gate.kind == gate.kind and gate.kind in ("times", "within"):
        wider = cast("int", other.gate.argument) <= cast("int", gate.argument)
        if gate.kind == "within":
            wider = cast("timedelta", gate.argument) <= cast("timedelta", other.gate.argument)
        return wider and implies(members[0], cast("Condition", other.members[0]))
    # What holds within a stretch of time, or several times, also holds without that.
    return implies(members[0], other)


def _needed(gate: Gate) -> int:
    return {"all": gate.arity, "at_least": cast("int", gate.argument)}.get(gate.kind, 1)


def check_waits(flow: SeenFlow) -> Iterator[Finding]:
    """Find a wait for more updates that may go on for ever."""
    intake, deadline = flow.declaration.options.intake, flow.declaration.options.deadline
    if intake.waits_for_more and intake.max_wait is None and (deadline is None or deadline.then == "alert"):
        what = "debounce waits as long as updates keep coming" if intake.debounce else "min_events waits for ever"
        message = f"{what}, and no max_wait ends the wait"
        yield flow.finding("AF014", message, "Give max_wait, or a deadline with on_deadline")


def check_mappers(flow: SeenFlow) -> Iterator[Finding]:
    """Find two assets that are needed together and whose mappers have no target key in common."""
    schedule = flow.declaration.options.schedule
    if schedule.condition is None or schedule.partitioning is None:
        return
    needed = sorted(schedule.condition.needed_uris)
    mappers = [(uri, schedule.partitioning.mapper_for(frozenset((Token("uri", uri),)))) for uri in needed]
    for (one, its), (other, others) in combinations(mappers, 2):
        if not may_meet(its, others):
            message = f"no key of {one} ({its.describe()}) ever meets one of {other} ({others.describe()})"
            yield flow.finding("AF010", message, "Give both mappers the same period and output_format")


def may_meet(one: PartitionMapper, other: PartitionMapper) -> bool:
    """Return False if two mappers certainly have no target key in common."""
    one, other = _target_mapper(one), _target_mapper(other)
    keys, others = _target_keys(one), _target_keys(other)
    if keys is None or others is None or not keys or not others:
        return True
    return any(_has(other, key, others) for key in keys) or any(_has(one, key, keys) for key in others)


def _target_mapper(mapper: PartitionMapper) -> PartitionMapper:
    return mapper.upstream_mapper if isinstance(mapper, RollupMapper) else mapper


def _target_keys(mapper: PartitionMapper) -> Sequence[str] | None:
    """Return target keys of a mapper: all it has, or an example of times; `None` if any text may be one."""
    match mapper:
        case TemporalMapper():
            return mapper.sample_targets()
        case FixedKeyMapper():
            return (mapper.downstream_key,)
        case AllowedKeyMapper():
            return mapper.allowed_keys
        case StaticMapper():
            return [key for _, targets in mapper.table for key in targets]
        case _:
            return None


def _has(mapper: PartitionMapper, key: str, keys: Sequence[str]) -> bool:
    """Return True if a text is a target key of a mapper."""
    if not isinstance(mapper, TemporalMapper):
        return key in keys
    try:
        mapper.read_target(key)
    except MappingError:
        return False
    return True


def check_formats(flows: Sequence[SeenFlow]) -> Iterator[Finding]:
    """Find flows that read the keys of an asset in another format than those before them."""
    known: dict[Token, tuple[str, SeenFlow]] = {}
    for flow in flows:
        for token, written in _formats(flow):
            first, other = known.setdefault(token, (written, flow))
            if first != written:
                message = f"keys of {token.value} have the format {written!r} here, and {first!r} in {other.name}"
                yield flow.finding("AF011", message, "Write the format of the keys, in input_format or key_format")


def _formats(flow: SeenFlow) -> Iterator[tuple[Token, str]]:
    """Yield the assets whose keys the flow writes or reads as times, each with the format."""
    schedule = flow.declaration.options.schedule
    if isinstance(schedule.timetable, CronPartitionTimetable):
        for outlet in flow.declaration.produces:
            if isinstance(outlet, Asset):
                yield outlet.token, schedule.timetable.key_format
    for token in sorted(schedule.tokens) if schedule.partitioning is not None else ():
        assert schedule.partitioning is not None
        mapper = _target_mapper(schedule.partitioning.mapper_for(frozenset((token,))))
        if isinstance(mapper, TemporalMapper):
            yield token, mapper.input_format


def lint(
    flows: Sequence[SeenFlow], external: Collection[str] = (), deployed: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield what is wrong with the schedules of flows. Contract 11.1.

    Parameters:
        external: patterns of URIs and names that something outside of the flows updates.
        deployed: URIs and names that a ledger knows; they only help to say what was meant.
    """
    flows = sorted(flows, key=lambda flow: flow.name)
    for flow in flows:
        yield from check_condition(flow)
        yield from check_mappers(flow)
        yield from check_waits(flow)
    yield from Assets(flows, external, deployed).check()
    yield from check_formats(flows)
