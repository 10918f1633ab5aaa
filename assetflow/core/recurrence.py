"""Recurrence rules of iCalendar (RFC 5545) on the wall clock of a time zone, with the clock-change rule of 6.2.

A rule that repeats by the hour or faster counts every real hour: a skipped time is left out, a repeated one counts
both times. One that repeats by the day or slower has its run each time: a skipped time moves on by the gap, of a
repeated one the first counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import cast

from dateutil.rrule import rrule, rruleset, rrulestr

from assetflow.core.wallclock import as_utc, every_instant, find_zone, first_instant
from assetflow.errors import InvalidTimetable

# Prefect counts rules without a start from here too.
DEFAULT_START = datetime(2020, 1, 1)  # noqa: DTZ001  a wall time: the zone is the rule's
_REACH = timedelta(days=2)
_FIRST_SPAN = timedelta(days=1)
_LAST_SPAN = timedelta(days=366 * 50)
_FAST = {"HOURLY": timedelta(hours=1), "MINUTELY": timedelta(minutes=1), "SECONDLY": timedelta(seconds=1)}


@dataclass(frozen=True)
class Recurrence:
    """The times of a recurrence rule in a time zone.

    Parameters:
        rule: the text of RFC 5545 ("FREQ=WEEKLY;BYDAY=MO,TH"), several lines with DTSTART, RDATE or EXDATE too. Without
            DTSTART it counts from 1 January 2020, as in Prefect. Times in it are on the wall clock.
        timezone: IANA name of the zone whose wall clock counts.

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
                f"The recurrence rule {self.rule!r} names a time zone of its own beside {self.timezone}",
                fix="Write its times without Z and TZID, and give the zone as timezone=.",
            )

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time strictly after this one, in UTC; None after the last."""
        start, span = as_utc(moment), _FIRST_SPAN
        while span < _LAST_SPAN:
            for instant in self.between(start, start + span):
                return instant
            start, span = start + span, span * 4
        return None

    def previous_before(self, moment: datetime) -> datetime | None:
        """The last time strictly before this one, in UTC; None before the first."""
        end, span = as_utc(moment) - timedelta(microseconds=1), _FIRST_SPAN
        while span < _LAST_SPAN and end.replace(tzinfo=None) > _read(self.rule).start - _REACH:
            found = list(self.between(end - span, end))
            if found:
                return found[-1]
            end, span = end - span, span * 4
        return None

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The times from `after` (excluded) to `until` (included), in UTC, in order."""
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
    """A rule taken apart: its wall times, where they start, and whether it repeats by the hour or faster."""

    parsed: rrule | rruleset
    start: datetime
    fast: bool
    step: timedelta | None

    def walls(self, first: datetime, last: datetime) -> list[datetime]:
        rule = self.parsed
        if self.step is not None and isinstance(rule, rrule):
            # dateutil follows a rule from its start; a whole number of steps later it goes on the same way.
            rule = rule.replace(dtstart=self.start + max(0, (first - self.start) // self.step) * self.step)
        return rule.between(first, last, inc=True)


@lru_cache(maxsize=64)
def _read(text: str) -> _Rule:
    try:
        if not isinstance(cast(object, text), str):
            raise TypeError("it is no text")
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
    """The time from one step of a fast rule to the next; None if its times are counted from its start."""
    if "COUNT=" in text:
        return None
    frequency = re.search(r"FREQ=(\w+)", text)
    interval = re.search(r"INTERVAL=(\d+)", text)
    return None if frequency is None else _FAST[frequency[1]] * int(interval[1] if interval else 1)
