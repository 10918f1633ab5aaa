"""Find events that Prefect stores with a time that was read long before: the clocks of their producers are behind.

Prefect's log can be filtered by the time when events occurred, but not by the time when they arrived. To read all of it
every minute would cost too much, but to count it is cheap: first for each day, then, for a day that has changed, for
each span of some minutes. A span that holds more events than before is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from assetflow.evaluator.ports import UpdateLog

MINUTES = 15
SPAN = timedelta(minutes=MINUTES)
DAY = timedelta(days=1)
# The wide sweep reads younger events every minute.
YOUNG = timedelta(minutes=5)
# The largest share of the time in which Prefect counts.
SHARE = 0.02

Span = tuple[datetime, datetime]


class LateEvents:
    """The spans of Prefect's event log that have grown since they were read.

    Parameters:
        clock: returns seconds, to measure how long Prefect takes to count.
    """

    def __init__(self, events: UpdateLog, names: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._names = names
        self._clock = clock
        self._days: dict[Span, int] = {}
        self._spans: dict[datetime, int] = {}
        self._seen: tuple[dict[Span, int], dict[datetime, int]] = ({}, {})
        self._took = 0.0

    async def look(self, since: datetime, now: datetime) -> Sequence[Span]:
        """Return the spans that hold more events than when they were read. Call `mark_read` when they are read again.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        started = self._clock()
        first = _start_of(SPAN, since)
        days: dict[Span, int] = {}
        spans = {start: number for start, number in self._spans.items() if start >= first}
        for day in _days(first, _start_of(SPAN, now - YOUNG)):
            days[day] = await self._events.number(*day, self._names)
            if days[day] != self._days.get(day):
                spans |= await self._events.counted(*day, self._names, MINUTES)
        self._seen = days, spans
        self._took = self._clock() - started
        grown = (start for start, number in spans.items() if number > self._spans.get(start, 0))
        return [(start, start + SPAN) for start in sorted(grown)]

    def mark_read(self) -> None:
        """Note that everything that the last look found is read."""
        self._days, self._spans = self._seen

    def pause(self, least: float) -> float:
        """Return the seconds until the next look: at least `least`, more if Prefect counts slowly."""
        return max(least, self._took / SHARE)


def _days(first: datetime, end: datetime) -> Iterator[Span]:
    """Yield the days from `first` to `end`; the first and the last one may be parts of days."""
    while first < end:
        following = min(end, _start_of(DAY, first) + DAY)
        yield first, following
        first = following


def _start_of(span: timedelta, moment: datetime) -> datetime:
    moment = moment.astimezone(UTC)
    return moment - (moment - datetime.min.replace(tzinfo=UTC)) % span
