"""The times of a cron expression on the wall clock of a time zone (contract 6.2).

This module computes the times day by day, because croniter gets the days wrong on which a clock changes. The rule for
those days depends on the hour field:

- It begins with `*`: every real hour counts. A skipped time is left out, a repeated one counts both times.
- Anything else: every day has its run. A skipped time moves on by the gap, and of a repeated one the first counts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import takewhile
from zoneinfo import ZoneInfo

from assetflow.core.time.cron_expression import read_fields
from assetflow.core.time.wallclock import as_utc, every_instant, find_zone, first_instant
from assetflow.errors import InvalidTimetable

_DAY = timedelta(days=1)
_LEAP_YEAR = 2024


@dataclass(frozen=True)
class _Plan:
    """The days of a cron expression, and the times on each of them.

    Attributes:
        either: a day needs only one of day of month and day of week; otherwise it needs both.
        every_hour: every real hour counts on the days on which a clock changes.
    """

    fields: tuple[str, ...]
    times: tuple[timedelta, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    every_hour: bool
    zone: ZoneInfo

    def has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day = day.day in self.days
        by_weekday = day.isoweekday() % 7 in self.weekdays
        return (by_day or by_weekday) if self.either else (by_day and by_weekday)

    def first_day(self, day: date, step: int) -> date:
        """Return the nearest day that has times: `day` itself, or one after it (step 1) or before it (step -1)."""
        while not self.has(day):
            if day.month not in self.months:
                day = day.replace(day=1 if step < 0 else monthrange(day.year, day.month)[1])
            day += step * _DAY
        return day


@dataclass(frozen=True)
class Cron:
    """The times of a cron expression in a time zone.

    Contract 6.2.

    Parameters:
        expression: five fields (minute, hour, day of month, month, day of week) of numbers, names, lists, ranges and
            steps, where `7` is Sunday; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
        timezone: the IANA name of the zone whose wall clock counts.

    Raises:
        InvalidTimetable: the expression cannot be read or names no day that exists, or the zone is unknown.
    """

    expression: str
    timezone: str = "UTC"
    _plan: _Plan = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_plan", _read(self.expression, find_zone(self.timezone)))

    @property
    def fields(self) -> tuple[str, ...]:
        """The five fields in lower case; for a macro such as `@daily`, the fields that it stands for."""
        return self._plan.fields

    def next_after(self, moment: datetime) -> datetime:
        """Return the first time strictly after `moment`, in UTC."""
        for instant in self._forward(as_utc(moment)):
            return instant
        raise self._no_more("after", moment)

    def previous_before(self, moment: datetime) -> datetime:
        """Return the last time strictly before `moment`, in UTC."""
        for instant in self._backward(as_utc(moment)):
            return instant
        raise self._no_more("before", moment)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the times after `after`, up to and including `until`, in UTC."""
        end = as_utc(until)
        return takewhile(lambda instant: instant <= end, self._forward(as_utc(after)))

    def _forward(self, moment: datetime) -> Iterator[datetime]:
        day = moment.date()
        try:
            while True:
                instants = _instants_of_utc_day(self, day)
                yield from instants[bisect_right(instants, moment) :]
                # The times of a local day can lie on the UTC day before it, the same one, and the two after it.
                day = max(day + _DAY, self._plan.first_day(day - _DAY, 1) - _DAY)
        except OverflowError:
            return

    def _backward(self, moment: datetime) -> Iterator[datetime]:
        day = moment.date()
        try:
            while True:
                instants = _instants_of_utc_day(self, day)
                yield from reversed(instants[: bisect_left(instants, moment)])
                day = min(day - _DAY, self._plan.first_day(day, -1) + 2 * _DAY)
        except OverflowError:
            return

    def _no_more(self, side: str, moment: datetime) -> InvalidTimetable:
        return InvalidTimetable(f"The calendar ends: the cron {self.expression!r} has no time {side} {moment}")


@lru_cache(maxsize=128)
def _instants_of_utc_day(cron: Cron, day: date) -> tuple[datetime, ...]:
    plan = cron._plan  # pyright: ignore[reportPrivateUsage]
    nearby = (day + days * _DAY for days in (-2, -1, 0, 1))
    local = (instant for local_day in nearby if plan.has(local_day) for instant in _instants(cron, local_day))
    return tuple(sorted({instant for instant in local if instant.date() == day}))


@lru_cache(maxsize=256)
def _instants(cron: Cron, day: date) -> tuple[datetime, ...]:
    """Return the times of one local day, in UTC. A change of the clock may put some of them out of order."""
    plan = cron._plan  # pyright: ignore[reportPrivateUsage]
    start = datetime.combine(day, time.min)
    offset = _steady_offset(start, plan.zone)
    if offset is not None:
        midnight = start.replace(tzinfo=UTC) - offset
        return tuple(midnight + of_day for of_day in plan.times)
    if plan.every_hour:
        return tuple(instant for of_day in plan.times for instant in every_instant(start + of_day, plan.zone))
    return tuple(first_instant(start + of_day, plan.zone) for of_day in plan.times)


def _steady_offset(start: datetime, zone: ZoneInfo) -> timedelta | None:
    """Return the zone's offset from UTC on this day, or `None` if the clock changes on it."""
    offsets = {
        (start + timedelta(hours=hour)).replace(tzinfo=zone, fold=fold).utcoffset()
        for hour in range(25)
        for fold in (0, 1)
    }
    return offsets.pop() if len(offsets) == 1 else None


def _read(expression: str, zone: ZoneInfo) -> _Plan:
    texts, (minutes, hours, days, months, weekdays) = read_fields(expression)
    plan = _Plan(
        fields=texts,
        times=tuple(timedelta(hours=hour, minutes=minute) for hour in sorted(hours) for minute in sorted(minutes)),
        days=days,
        months=months,
        weekdays=weekdays,
        either=texts[2] != "*" and texts[4] != "*",
        every_hour=texts[1].startswith("*"),
        zone=zone,
    )
    if texts[4] == "*" and min(days) > max(monthrange(_LEAP_YEAR, month)[1] for month in months):
        raise InvalidTimetable(
            f"The cron {expression!r} has no times: none of its months has a day {min(days)}",
            fix="Name a day that one of its months has.",
            rule="6.2",
        )
    return plan
