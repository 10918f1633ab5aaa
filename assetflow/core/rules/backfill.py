"""Backfills: the target keys of a consumer in a range of time, and the decisions for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from assetflow.core.partitions import PartitionMapper
from assetflow.core.partitions.ranges import KeySeries, series_of_keys, series_of_mapper
from assetflow.core.time.timetables import CronPartitionTimetable
from assetflow.core.time.wallclock import first_instant
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Leaf, Token
from assetflow.core.values.consumers import Consumer, Decision, backfill_id
from assetflow.core.values.schedules import Partitioning, Schedule
from assetflow.errors import InvalidCall

_INSTANT = timedelta(microseconds=1)


def target_keys_between(
    schedule: Schedule, start: datetime, end: datetime, known: Callable[[], Iterable[str]]
) -> tuple[str, ...]:
    """Return the target keys whose periods begin at `start` or later and before `end`, in order of time.

    Parameters:
        start, end: naive wall times in the schedule's time zone.
        known: returns keys that the consumer has had; called if the mappers do not say how keys are written.

    Raises:
        InvalidCall: neither the schedule nor the known keys say which keys lie in a range.
        InvalidPartition: there are more than 100,000 keys.
    """
    timetable = schedule.timetable
    if isinstance(timetable, CronPartitionTimetable):
        return _keys_of_ticks(timetable, start, end)
    found = {series for mapper in mappers_of(schedule) if (series := series_of_mapper(mapper)) is not None}
    series = found.pop() if len(found) == 1 else None if found else series_of_keys(known())
    if series is None:
        raise InvalidCall(
            "its schedule does not say which keys lie between two times"
            + (": its mappers write keys of different kinds" if found else ""),
            fix="Name the keys: --keys 2026-11-20 2026-11-21",
        )
    return tuple(series.between(start, end))


def backfill_decisions(consumer: Consumer, attempts: Mapping[str, int], now: datetime) -> Sequence[Decision]:
    """Return the decisions of a backfill: one for each target key, in their order. Contract 4.5.

    Parameters:
        attempts: target key to the number of the attempt. The same key and attempt give the same decision id.
    """
    numbers = {backfill_id(consumer.deployment_id, key, attempt): key for key, attempt in attempts.items()}
    return [
        Decision(number, consumer.id, consumer.deployment_id, key, (), now, "backfill")
        for number, key in numbers.items()
    ]


def next_decisions(wanted: Iterable[Decision], made: Collection[UUID], free: int) -> Sequence[Decision]:
    """Return the decisions to make next.

    Parameters:
        made: the ids of the decisions that are made already.
        free: how many more runs may go on at the same time.
    """
    return [each for each in wanted if each.id not in made][: max(free, 0)]


def mappers_of(schedule: Schedule) -> Sequence[PartitionMapper]:
    """Return the mappers of the leaves of a schedule, each once; none for a schedule without partitions."""
    parts = schedule.partitioning
    if parts is None or schedule.condition is None:
        return ()
    return tuple(dict.fromkeys(mapper_of_leaf(parts, leaf) for leaf in schedule.condition.leaves))


def mapper_of_leaf(partitioning: Partitioning, leaf: Leaf) -> PartitionMapper:
    """Return the mapper of a leaf, found by the URI and name in the schedule alone, without the ledger's names."""
    names = (Token("name", leaf.name),) if isinstance(leaf, Asset) else ()
    return partitioning.mapper_for(frozenset((leaf.token, *names)))


def series_to_look_at(
    every: str | None, key_format: str, timezone: str, known: Callable[[], Iterable[str]]
) -> KeySeries:
    """Return the series of an asset's keys: the one asked for, or the one to which its known keys belong.

    Parameters:
        every: the period: hour, day, week, month, quarter or year; `None` to derive it from the known keys.
        key_format: how the keys are written, as in `strftime`; "" for the usual format of the period.
        timezone: the IANA name of the zone of the keys.
        known: returns keys of the asset; called if `every` is `None`.

    Raises:
        InvalidCall: `every` is `None`, and the known keys are not times.
        InvalidPartition: the period or the time zone is unknown.
    """
    if every is not None:
        return KeySeries.every(every, key_format, timezone)
    found = series_of_keys(known())
    if found is None:
        raise InvalidCall("its keys do not show their period", fix="Name it: --every day (or hour, month …)")
    return KeySeries(replace(found.writer, timezone=timezone, output_format=key_format or found.writer.output_format))


def _keys_of_ticks(timetable: CronPartitionTimetable, start: datetime, end: datetime) -> tuple[str, ...]:
    zone = ZoneInfo(timetable.timezone)
    # An offset says which run has which key. It does not change which keys there are.
    plain = replace(timetable, run_offset=0)
    ticks = plain.ticks_between(first_instant(start, zone) - _INSTANT, first_instant(end, zone) - _INSTANT)
    return tuple(dict.fromkeys(tick.partition_key for tick in ticks if tick.partition_key is not None))
