"""Which target keys a consumer has in a range of time: what a backfill makes decisions for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assetflow.core.assets import Asset
from assetflow.core.conditions import Leaf, Token
from assetflow.core.partitions import PartitionMapper
from assetflow.core.partitions.ranges import KeySeries, series_of_keys, series_of_mapper
from assetflow.core.schedules import Partitioning, Schedule
from assetflow.core.timetables import CronPartitionTimetable
from assetflow.core.wallclock import first_instant
from assetflow.errors import InvalidCall

_INSTANT = timedelta(microseconds=1)


def target_keys_between(
    schedule: Schedule, start: datetime, end: datetime, known: Callable[[], Iterable[str]]
) -> tuple[str, ...]:
    """The target keys whose periods begin at `start` or later and before `end`, in order of time.

    Parameters:
        start, end: wall times of the schedule's zone, without a zone of their own.
        known: tells keys that are known of the consumer; asked if its mappers do not write times.

    Raises:
        InvalidCall: the schedule does not say which keys lie in a range.
        InvalidPartition: more keys than anybody can look at.
    """
    timetable = schedule.timetable
    if isinstance(timetable, CronPartitionTimetable):
        return _keys_of_ticks(timetable, start, end)
    found = {series for mapper in mappers_of(schedule) if (series := series_of_mapper(mapper)) is not None}
    series = found.pop() if len(found) == 1 else None if found else series_of_keys(known())
    if series is None:
        raise InvalidCall(
            "its schedule does not tell which keys lie between two times"
            + (": its mappers write different ones" if found else ""),
            fix="Name the keys: --keys 2026-11-20 2026-11-21",
        )
    return tuple(series.between(start, end))


def mappers_of(schedule: Schedule) -> Sequence[PartitionMapper]:
    """The mapper of each leaf of a partitioned schedule, each once."""
    parts = schedule.partitioning
    if parts is None or schedule.condition is None:
        return ()
    return tuple(dict.fromkeys(mapper_of_leaf(parts, leaf) for leaf in schedule.condition.leaves))


def mapper_of_leaf(partitioning: Partitioning, leaf: Leaf) -> PartitionMapper:
    """The mapper that counts for what a leaf stands for, as far as the schedule itself tells."""
    names = (Token("name", leaf.name),) if isinstance(leaf, Asset) else ()
    return partitioning.mapper_for(frozenset((leaf.token, *names)))


def series_to_look_at(
    every: str | None, key_format: str, timezone: str, known: Callable[[], Iterable[str]]
) -> KeySeries:
    """The series of an asset's keys: as asked for, or as its known keys are written.

    Raises:
        InvalidCall: nothing is asked for, and the known keys are no times.
        InvalidPartition: an unknown period or time zone.
    """
    if every is not None:
        return KeySeries.every(every, key_format, timezone)
    found = series_of_keys(known())
    if found is None:
        raise InvalidCall("its keys do not tell how often one comes", fix="Say it: --every day (or hour, month …)")
    return KeySeries(replace(found.writer, timezone=timezone, output_format=key_format or found.writer.output_format))


def _keys_of_ticks(timetable: CronPartitionTimetable, start: datetime, end: datetime) -> tuple[str, ...]:
    zone = ZoneInfo(timetable.timezone)
    # A key names a time of the cron; an offset says which run has it, not which keys there are.
    plain = replace(timetable, run_offset=0)
    ticks = plain.ticks_between(first_instant(start, zone) - _INSTANT, first_instant(end, zone) - _INSTANT)
    return tuple(dict.fromkeys(tick.partition_key for tick in ticks if tick.partition_key is not None))
