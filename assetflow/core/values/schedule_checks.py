"""Checks of `@flow`: they refuse schedules that can never work as they are meant.

Each check looks at one schedule alone. Only some of them also apply to deployed schedules.
"""

from __future__ import annotations

from collections.abc import Iterator

from assetflow.core.partitions import PartitionMapper, RollupMapper, TemporalMapper
from assetflow.core.partitions.base import check_directives
from assetflow.core.time.timetables import CronPartitionTimetable
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef
from assetflow.core.values.conditions import Token
from assetflow.core.values.schedules import Partitioning, Schedule
from assetflow.errors import InvalidSchedule, InvalidTimetable, NameTaken


def check_schedule(schedule: Schedule) -> None:
    """Refuse a schedule that can never work.

    Raises:
        InvalidSchedule: a mapper belongs to an asset that is not in the schedule, or a partition would wait for ever.
        InvalidPartition, InvalidTimetable: a key format has an unknown directive or cannot be read back.
        NameTaken: two URIs have the same name.
    """
    _refuse_shared_names(schedule)
    _refuse_unused_mappers(schedule)
    for mapper in _mappers(schedule.partitioning):
        if isinstance(mapper, TemporalMapper):
            mapper.check_formats()
    if isinstance(schedule.timetable, CronPartitionTimetable):
        check_directives(schedule.timetable.key_format, "key_format", InvalidTimetable)
    refuse_endless_waiting(schedule)


def never_runs(schedule: Schedule) -> bool:
    """Return True if the condition names no asset, so that no update can ever start a run. Contract 4.1."""
    return schedule.condition is not None and not schedule.tokens


def refuse_endless_waiting(schedule: Schedule) -> None:
    """Refuse a schedule with a roll-up that no key can ever complete, because its window and its mapper do not fit.

    Raises:
        InvalidSchedule: there is such a roll-up. The error names both key formats.
    """
    parts = schedule.partitioning
    mappers = () if parts is None else (parts.default, *(mapper for _, mapper in parts.mappers))
    for mapper in mappers:
        problem = mapper.problem() if isinstance(mapper, RollupMapper) else None
        if problem is not None:
            raise InvalidSchedule(
                f"A partition would wait for ever. {problem}",
                rule="5.2",
                fix="Give a window as long as the mapper's periods, and the input_format of the upstream keys",
            )


def _refuse_shared_names(schedule: Schedule) -> None:
    owners: dict[str, str] = {}
    for asset in schedule.named_assets:
        owner = owners.setdefault(asset.name, asset.uri)
        if owner != asset.uri:
            raise NameTaken(
                f"the schedule gives the name {asset.name!r} to {owner!r} and to {asset.uri!r}",
                rule="1.2",
                fix="Give one of the two assets another name",
            )


def _refuse_unused_mappers(schedule: Schedule) -> None:
    """Refuse a mapper for an asset that is not in the schedule. With an alias in it, any asset may come."""
    condition, parts = schedule.condition, schedule.partitioning
    if condition is None or parts is None or any(isinstance(leaf, AssetAlias) for leaf in condition.leaves):
        return
    known = {token for leaf in condition.leaves for token in _tokens(leaf)}
    for target, _ in parts.mappers:
        if known.isdisjoint(_tokens(target)):
            raise InvalidSchedule(
                f"there is a mapper for {target!r}, which is not in the schedule ({condition.describe()})",
                rule="5.2",
                fix="Add it to assets=, or write it in partition_mapper_config in the same way as in assets=",
            )


def _tokens(leaf: object) -> frozenset[Token]:
    """Return the tokens by which a mapper can find a leaf: its URI and its name."""
    if isinstance(leaf, Asset):
        return frozenset((leaf.token, Token("name", leaf.name)))
    return frozenset((leaf.token,)) if isinstance(leaf, AssetRef) else frozenset()


def _mappers(parts: Partitioning | None) -> Iterator[PartitionMapper]:
    """Yield all mappers of a schedule, also those that are parts of others."""
    waiting = [] if parts is None else [parts.default, *(mapper for _, mapper in parts.mappers)]
    while waiting:
        mapper = waiting.pop()
        yield mapper
        waiting.extend(mapper.parts)
