"""The times of a cron expression on the wall clock of a time zone (contract 6.2).

This module computes the times day by day, because croniter gets the days wrong on which a clock changes. The rule for
those days depends on the hour field:

- It begins with `*`: every real hour counts. A skipped time is left out, a repeated one counts both times.
- Anything else: every day has its run. A skipped time moves on by the gap, and of a repeated one the first counts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import lru_cache
from itertools import takewhile
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from assetflow.errors import AssetflowError, InvalidTimetable


def find_zone(name: str, error: type[AssetflowError] = InvalidTimetable, *, rule: str = "6.2") -> ZoneInfo:
    """Return the time zone with this IANA name ("Europe/Berlin").

    Parameters:
        name: a name of the IANA database, spelled as there.
        error: the class of the error to raise.
        rule: the rule of the contract that the error cites.

    Raises:
        error: there is no such time zone. The error suggests similar names.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError) as cause:
        close = get_close_matches(str(name), available_timezones(), n=3, cutoff=0.5)
        fix = f"Similar names: {', '.join(close)}" if close else 'Give a name such as "UTC" or "Europe/Berlin"'
        raise error(f"There is no time zone {name!r}", fix=fix, rule=rule) from cause


def as_utc(moment: datetime) -> datetime:
    """Return the same instant in UTC.

    Raises:
        InvalidTimetable: the time has no time zone.
    """
    if moment.tzinfo is None:
        raise InvalidTimetable(
            f"The time {moment.isoformat()} has no time zone", fix="Give an aware datetime, e.g. with tzinfo=UTC."
        )
    return moment.astimezone(UTC)


def first_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return when the clock shows this time first; if it skips it, the time moved on by the gap."""
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def every_instant(wall: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return all instants at which the clock shows this time: none if it skips it, two if it repeats it."""
    instants = dict.fromkeys(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return tuple(sorted(instant for instant in instants if _shown(instant, zone) == wall))


def last_local(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time, with its zone, that a wall time in a partition key stands for.

    Of a repeated time the second counts, and a skipped one moves on by the gap. Airflow, whose tasks may have written
    the key, reads it in the same way.
    """
    second = wall.replace(tzinfo=zone, fold=1)
    if _shown(second.astimezone(UTC), zone) == wall:
        return second
    return first_instant(wall, zone).astimezone(zone)


def _shown(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)


MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_TERM = re.compile(r"(\*|(?P<first>[0-9a-z]+)(-(?P<last>[0-9a-z]+))?)(/(?P<step>[0-9]+))?", re.ASCII)


@dataclass(frozen=True)
class _Field:
    """One of the five fields: its name, its range of numbers, and the names that stand for numbers."""

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()

    def allowed(self) -> str:
        numbers = f"{self.lowest}-{self.highest}"
        words = f", {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{numbers}{words}, lists (1,3), ranges (1-3) and steps (*/2 or 1-5/2)"

    def runs_backward(self, term: re.Match[str]) -> bool:
        """Return True if a term is a range whose end lies before its start."""
        if term["last"] is None:
            return False
        # A range of weekdays may end with Sunday.
        last = 7 if term["last"] == WEEKDAYS[0] else self._number(term["last"])
        return last < self._number(term["first"])

    def _number(self, word: str) -> int:
        if word in self.names:
            # Months count from 1, days of the week from 0.
            return self.names.index(word) + self.lowest
        return int(word)


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, MONTHS),
    _Field("day of week", 0, 7, WEEKDAYS),
)


def read_fields(expression: object) -> tuple[tuple[str, ...], list[frozenset[int]]]:
    """Return the five fields of an expression in lower case, and the numbers that each allows.

    Raises:
        InvalidTimetable: the expression does not have five fields, or one of them cannot be read.
    """
    texts = _split(expression)
    return texts, [_read_field(expression, text, kind) for text, kind in zip(texts, _FIELDS, strict=True)]


def _split(expression: object) -> tuple[str, ...]:
    text = expression.strip().lower() if isinstance(expression, str) else ""
    fields = tuple(MACROS.get(text, text).split())
    if len(fields) == len(_FIELDS):
        return fields
    raise InvalidTimetable(
        f"The cron {expression!r} has {len(fields)} field{'' if len(fields) == 1 else 's'} instead of 5",
        fix="Give minute, hour, day of month, month and day of week, such as '30 6 * * 1-5', or one of "
        f"{', '.join(MACROS)}.",
        rule="6.2",
    )


def _read_field(expression: object, text: str, kind: _Field) -> frozenset[int]:
    terms = [_TERM.fullmatch(term) for term in text.split(",")]
    readable = all(term is not None and int(term["step"] or 1) <= kind.highest for term in terms)
    try:
        # croniter also reads L, W, # and H, which the contract does not have. `_TERM` keeps out the signs, this check
        # the letters. Each field is tried alone, so that the error can name it.
        words = re.findall("[a-z]+", text)
        if not readable or any(word not in kind.names for word in words):
            raise ValueError(text)
        numbers = _numbers_of(text, kind)
    except ValueError as cause:
        raise InvalidTimetable(
            f"The {kind.name} field {text!r} of the cron {expression!r} cannot be read",
            fix=f"Allowed are {kind.allowed()}.",
            rule="6.2",
        ) from cause
    for term in terms:
        if term is not None and kind.runs_backward(term):
            raise InvalidTimetable(
                f"The range {term[0]!r} in the {kind.name} field of the cron {expression!r} runs backwards",
                fix=f"Write the smaller number first, or two ranges: {term['first']}-{kind.highest},"
                f"{kind.lowest}-{term['last']}.",
                rule="6.2",
            )
    return numbers


def _numbers_of(text: str, kind: _Field) -> frozenset[int]:
    # Most commands expand no cron, and start faster without it.
    from croniter import croniter

    position = _FIELDS.index(kind)
    fields = ["*"] * len(_FIELDS)
    fields[position] = text
    found = croniter.expand(" ".join(fields))[0][position]
    if "*" in found:
        last = kind.highest - 1 if kind.names == WEEKDAYS else kind.highest
        return frozenset(range(kind.lowest, last + 1))
    return frozenset(int(value) for value in found)


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
        return self._first(self._forward(as_utc(moment)), "after", moment)

    def previous_before(self, moment: datetime) -> datetime:
        """Return the last time strictly before `moment`, in UTC."""
        return self._first(self._backward(as_utc(moment)), "before", moment)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the times after `after`, up to and including `until`, in UTC."""
        end = as_utc(until)
        return takewhile(lambda instant: instant <= end, self._forward(as_utc(after)))

    def _forward(self, moment: datetime) -> Iterator[datetime]:
        day = moment.date()
        with suppress(OverflowError):
            while True:
                instants = _instants_of_utc_day(self, day)
                yield from instants[bisect_right(instants, moment) :]
                # The times of a local day can lie on the UTC day before it, the same one, and the two after it.
                day = max(day + _DAY, self._plan.first_day(day - _DAY, 1) - _DAY)

    def _backward(self, moment: datetime) -> Iterator[datetime]:
        day = moment.date()
        with suppress(OverflowError):
            while True:
                instants = _instants_of_utc_day(self, day)
                yield from reversed(instants[: bisect_left(instants, moment)])
                day = min(day - _DAY, self._plan.first_day(day, -1) + 2 * _DAY)

    def _first(self, instants: Iterator[datetime], side: str, moment: datetime) -> datetime:
        for instant in instants:
            return instant
        raise InvalidTimetable(f"The calendar ends: the cron {self.expression!r} has no time {side} {moment}")


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


def _times(hours: Iterable[int], minutes: Collection[int]) -> tuple[timedelta, ...]:
    return tuple(timedelta(hours=hour, minutes=minute) for hour in sorted(hours) for minute in sorted(minutes))


def _read(expression: str, zone: ZoneInfo) -> _Plan:
    texts, (minutes, hours, days, months, weekdays) = read_fields(expression)
    plan = _Plan(
        fields=texts,
        times=_times(hours, minutes),
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


def cron_in_words(cron: Cron) -> str:
    """Return a cron in words, as in "at 00:00 every day (Europe/Berlin)"; as its text if cronsim reads it otherwise."""
    words = _explained(cron) or f"at the times of the cron {cron.expression!r}"
    return f"{words} ({cron.timezone})"


def _explained(cron: Cron) -> str | None:
    plan = cron._plan  # pyright: ignore[reportPrivateUsage]
    try:
        read = CronSim(" ".join(plan.fields), datetime.min.replace(tzinfo=UTC))
    except CronSimError:
        return None
    weekdays = {day % 7 for day in read.weekdays if isinstance(day, int)}
    if (_times(read.hours, read.minutes), read.days, read.months, weekdays) != (
        plan.times,
        plan.days,
        plan.months,
        plan.weekdays,
    ):
        return None
    # With `*/2` as the day of the month and a weekday, cronsim wants both, and Prefect one of them.
    if read.day_and == plan.either:
        return None
    words = read.explain()
    return words[0].lower() + words[1:]
