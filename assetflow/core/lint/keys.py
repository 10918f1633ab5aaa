"""Checks of partition keys: mappers that never give the same target key, and keys of one asset in several formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from assetflow.core.lint.findings import Finding, SeenFlow
from assetflow.core.partitions import (
    AllowedKeyMapper,
    FixedKeyMapper,
    PartitionMapper,
    RollupMapper,
    StaticMapper,
    TemporalMapper,
)
from assetflow.core.time.timetables import CronPartitionTimetable
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.errors import MappingError


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
