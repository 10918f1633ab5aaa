"""Recurrence rules of iCalendar (RFC 5545) on the wall clock of a time zone.

On days on which a clock changes, they follow contract 6.2, as crons do. If a rule repeats every hour or more often,
every real hour counts: a skipped time is left out, a repeated one counts both times. If it repeats every day or less
often, a skipped time moves on by the gap, and of a repeated one the first counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import cast

from dateutil.rrule import rrule, rruleset, rrulestr

from assetflow.core.time.cron import as_utc, every_instant, find_zone, first_instant
from assetflow.errors import InvalidTimetable

# Rules without a start count from here, as in Prefect.
DEFAULT_START = datetime(2020, 1, 1)  # noqa: DTZ001  a wall time: the zone is the rule's
_REACH = timedelta(days=2)
_FIRST_SPAN = timedelta(days=1)
_LAST_SPAN = timedelta(days=366 * 50)
_FAST = {"HOURLY": timedelta(hours=1), "MINUTELY": timedelta(minutes=1), "SECONDLY": timedelta(seconds=1)}


@dataclass(frozen=True)
class Recurrence:
    """The times of a recurrence rule in a time zone.

    Parameters:
        rule: the text of RFC 5545, such as "FREQ=WEEKLY;BYDAY=MO,TH". It may have several lines, with DTSTART, RDATE or
            EXDATE. Without DTSTART it counts from 1 January 2020, as in Prefect. Times in it are wall times.
        timezone: the IANA name of the zone whose wall clock counts.

    Raises:
        InvalidTimetable: the rule cannot be read, names another zone, or the zone is unknown.
    """

    rule: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        find_zone(self.timezone)
        _read(self.rule)
        if self.timezone != "UTC" and re.search(r"TZID=|\d{6}Z", self.rule):
            raise InvalidTimetable(
                f"The recurrence rule {self.rule!r} names a time zone, and timezone= is {self.timezone!r}",
                fix="Write its times without Z and TZID, and give the zone as timezone=.",
            )

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time strictly after `moment`, in UTC, or `None` if there are no more."""
        start, span = as_utc(moment), _FIRST_SPAN
        while span < _LAST_SPAN:
            for instant in self.between(start, start + span):
                return instant
            start, span = start + span, span * 4
        return None

    def previous_before(self, moment: datetime) -> datetime | None:
        """Return the last time strictly before `moment`, in UTC, or `None` if there is none."""
        end, span = as_utc(moment) - timedelta(microseconds=1), _FIRST_SPAN
        while span < _LAST_SPAN and end.replace(tzinfo=None) > _read(self.rule).start - _REACH:
            found = list(self.between(end - span, end))
            if found:
                return found[-1]
            end, span = end - span, span * 4
        return None

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the times after `after`, up to and including `until`, in UTC, in order."""
        zone = find_zone(self.timezone)
        first, last = as_utc(after), as_utc(until)
        rule = _read(self.rule)
        walls = rule.walls(first.replace(tzinfo=None) - _REACH, last.replace(tzinfo=None) + _REACH)
        if rule.fast:
            instants = {instant for wall in walls for instant in every_instant(wall, zone)}
        else:
            instants = {first_instant(wall, zone) for wall in walls}
        return iter(sorted(instant for instant in instants if first < instant <= last))


@dataclass(frozen=True)
class _Rule:
    """A rule that was read.

    Attributes:
        parsed: gives the wall times.
        start: the wall time from which the rule counts.
        fast: it repeats every hour or more often.
        step: the time from one repetition to the next; `None` if `parsed` has to count from the start.
    """

    parsed: rrule | rruleset
    start: datetime
    fast: bool
    step: timedelta | None

    def walls(self, first: datetime, last: datetime) -> list[datetime]:
        rule = self.parsed
        if self.step is not None and isinstance(rule, rrule):
            # dateutil counts from the start of a rule, which may be years ago. A start that is a whole number of steps
            # later gives the same times.
            rule = rule.replace(dtstart=self.start + max(0, (first - self.start) // self.step) * self.step)
        return rule.between(first, last, inc=True)


@lru_cache(maxsize=64)
def _read(text: str) -> _Rule:
    try:
        if not isinstance(cast(object, text), str):
            raise TypeError("it is not a text")
        parsed = rrulestr(text, dtstart=DEFAULT_START, ignoretz=True)
        given = re.search(r"DTSTART[^:]*:(\d{8})(?:T(\d{6}))?", text.upper())
        start = DEFAULT_START
        if given is not None:
            start = datetime.strptime(given[1] + (given[2] or "000000"), "%Y%m%d%H%M%S")  # noqa: DTZ007
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as cause:
        raise InvalidTimetable(
            f"The recurrence rule {text!r} cannot be read: {cause}",
            fix='Give a rule of RFC 5545, such as "FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=6".',
        ) from cause
    frequencies = re.findall(r"FREQ=(\w+)", text.upper())
    fast = any(frequency in _FAST for frequency in frequencies)
    return _Rule(parsed, start, fast, _step(text.upper()) if fast and isinstance(parsed, rrule) else None)


def _step(text: str) -> timedelta | None:
    """Return the time from one repetition of a fast rule to the next, or `None` if it counts its repetitions."""
    if "COUNT=" in text:
        return None
    frequency = re.search(r"FREQ=(\w+)", text)
    interval = re.search(r"INTERVAL=(\d+)", text)
    return None if frequency is None else _FAST[frequency[1]] * int(interval[1] if interval else 1)
