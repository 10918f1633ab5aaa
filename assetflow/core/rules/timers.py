"""Which times of a timetable get a run (contract 6.1), and which target keys a backfill decides on.

The simulator and the evaluator keep a `Timer` for each consumer with a timetable. The simulator runs the times that
have passed. The evaluator schedules runs in advance, so that they start on time even while no evaluator is running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from assetflow.core.partitions import PartitionMapper
from assetflow.core.partitions.ranges import KeySeries, series_of_keys, series_of_mapper
from assetflow.core.time.cron import first_instant
from assetflow.core.time.timetables import CronPartitionTimetable, Tick, Timetable
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Leaf, Token
from assetflow.core.values.consumers import Consumer, Decision, backfill_id
from assetflow.core.values.schedules import Partitioning, Schedule
from assetflow.errors import InvalidCall, MappingError

_NAMESPACE = UUID("b7d2f0c4-52a1-5c1e-8c57-0d4f6a1e9b30")
_INSTANT = timedelta(microseconds=1)
_FIRST_STRETCH = timedelta(days=1)
_LONGEST_STRETCH = timedelta(days=64)


@dataclass(frozen=True)
class Timer:
    """The times of one consumer, and how many of them are done.

    Attributes:
        after: every time up to and including this one has its run or needs none.
        paused: no time gets a run, and those that pass meanwhile never get one.
        held: the deployment is paused: no time gets a run now, and all of them get one once it is resumed (3.4).
    """

    timetable: Timetable
    after: datetime
    paused: bool = False
    held: bool = False

    @property
    def is_idle(self) -> bool:
        """True while no time gets a run."""
        return self.paused or self.held

    def due(self, now: datetime) -> Iterator[Tick]:
        """Return the times up to `now` that have no run yet, oldest first."""
        return iter(()) if self.is_idle else ticks_between(self.timetable, self.after, now)

    def moved(self, after: datetime) -> Timer:
        """Return the timer once the times up to `after` have their runs."""
        return replace(self, after=after)

    def withdrawn(self, now: datetime) -> Timer:
        """Return the timer once the runs scheduled for later than `now` are deleted."""
        return replace(self, after=min(self.after, now))


def follow(timer: Timer | None, consumer: Consumer, now: datetime) -> Timer | None:
    """Return the timer of a consumer as it is now, or `None` if the consumer has no times.

    A new timetable counts from `now` on, `now` included. After a pause, the times after its end count. A paused
    deployment (`held`) loses no times: they get their runs later.

    Parameters:
        timer: what this function returned the last time; `None` for a new consumer.
    """
    timetable = consumer.schedule.timetable
    if timetable is None or not consumer.schedule.has_times:
        return None
    if timer is None or timer.timetable != timetable:
        return Timer(timetable, now - _INSTANT, consumer.paused, consumer.held)
    after = now if timer.paused and not consumer.paused else timer.after
    return Timer(timetable, after, consumer.paused, consumer.held)


def leaves_runs_behind(before: Timer, timer: Timer | None) -> bool:
    """Return True if the runs scheduled in advance are obsolete.

    The timetable changed or was removed, or the consumer is paused or held.
    """
    return not before.is_idle and (timer is None or timer.is_idle or timer.timetable != before.timetable)


@dataclass(frozen=True)
class Lead:
    """How far in advance runs are scheduled, so that the evaluator may be down for a while.

    Attributes:
        within: schedule all times of this span,
        at_least: and at least this number of them,
        at_most: but never more than this number,
        horizon: and none further ahead than this.
    """

    within: timedelta = timedelta(hours=24)
    at_least: int = 3
    at_most: int = 100
    horizon: timedelta = timedelta(days=100)


@dataclass(frozen=True)
class TimerWork:
    """The work of a timer.

    Attributes:
        ticks: the times to schedule runs for, oldest first.
        again: when there may be more to do; `None` while the timer is idle.
    """

    ticks: tuple[Tick, ...]
    again: datetime | None


def plan(timer: Timer, now: datetime, lead: Lead, limit: int = 100) -> TimerWork:
    """Return the times to schedule runs for now: every missed one, oldest first, then those ahead.

    With `catchup="latest"`, only the latest of the missed ones.

    Parameters:
        limit: the largest number of times to return; if there are more, `again` is `now`.
    """
    if timer.is_idle:
        return TimerWork((), None)
    if timer.timetable.catchup == "latest" and (last := timer.timetable.previous_before(now + _INSTANT)) is not None:
        timer = timer.moved(max(timer.after, last.time - _INSTANT))
    ticks: list[Tick] = []
    again = now + _FIRST_STRETCH
    ahead = 0
    for tick in ticks_between(timer.timetable, min(timer.after, now), now + lead.horizon):
        if tick.time > now:
            ahead += 1
            if ahead > lead.at_most:
                break
            if ahead > lead.at_least and tick.time > now + lead.within:
                again = min(again, tick.time - lead.within)
                break
            again = min(again, tick.time)
        if tick.time > timer.after:
            if len(ticks) == limit:
                return TimerWork(tuple(ticks), now)
            ticks.append(tick)
    return TimerWork(tuple(ticks), again)


def ticks_between(timetable: Timetable, after: datetime, until: datetime) -> Iterator[Tick]:
    """Yield the times after `after`, up to and including `until`.

    A timetable may compute all times of a span at once, so it is asked for one short span after the other.
    """
    stretch = _FIRST_STRETCH
    while after < until:
        end = min(after + stretch, until)
        yield from timetable.ticks_between(after, end)
        after, stretch = end, min(stretch * 4, _LONGEST_STRETCH)


def tick_id(deployment_id: UUID, time: datetime) -> UUID:
    """Return the idempotency key of the run of one time, with which Prefect creates only one run for it."""
    return uuid5(_NAMESPACE, f"{deployment_id}|{time.astimezone(UTC).isoformat()}")


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


def check_target_keys(schedule: Schedule, keys: Iterable[str]) -> None:
    """Refuse keys that no mapper of the schedule writes, where its keys are times. Contract 8.18.

    Raises:
        InvalidCall: a key is not a time in the format of the mapper; `where` is `keys`.
    """
    for series in filter(None, map(series_of_mapper, mappers_of(schedule))):
        for key in keys if series.writer.sample_targets() else ():
            try:
                series.writer.read_target(key)
            except MappingError as error:
                raise InvalidCall(
                    f"{key!r} is not a key of this flow", where="keys", rule="8.18", fix=error.fix
                ) from error


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


def mappers_of(schedule: Schedule) -> Sequence[PartitionMapper]:
    """Return the mappers of the leaves of a schedule, each once; none for a schedule without partitions.

    An Eager or Lazy schedule has no leaves: each of its mappers may be that of an input.
    """
    parts = schedule.partitioning
    if parts is None:
        return ()
    if schedule.condition is None:
        return tuple(dict.fromkeys((parts.default, *(mapper for _, mapper in parts.mappers))))
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
