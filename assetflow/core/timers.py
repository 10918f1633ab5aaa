"""The time part of consumers: which times of a time table have to run (6.1).

The simulator and the live evaluator keep a `Timer` for each consumer with a time table. The simulator runs the times
that have passed; the evaluator makes runs ahead, so that nobody waits for an evaluator that is down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from assetflow.core.consumers import Consumer
from assetflow.core.timetables import Tick, Timetable

_NAMESPACE = UUID("b7d2f0c4-52a1-5c1e-8c57-0d4f6a1e9b30")
_INSTANT = timedelta(microseconds=1)
_FIRST_WINDOW = timedelta(days=1)
_LONGEST_WINDOW = timedelta(days=64)


@dataclass(frozen=True)
class Timer:
    """How far the times of one consumer have come.

    Attributes:
        after: the times up to here, included, have their runs or need none.
        paused: no time runs, and those that pass are not made up for.
        held: the deployment itself is paused: no time runs now, all of them once it is released (3.4).
    """

    timetable: Timetable
    after: datetime
    paused: bool = False
    held: bool = False

    @property
    def rests(self) -> bool:
        return self.paused or self.held

    def due(self, now: datetime) -> Iterator[Tick]:
        """The times that have no run yet, up to now, oldest first."""
        return iter(()) if self.rests else ticks_between(self.timetable, self.after, now)

    def moved(self, after: datetime) -> Timer:
        """The timer when the times up to here have their runs."""
        return replace(self, after=after)

    def withdrawn(self, now: datetime) -> Timer:
        """The timer when the runs of later times than now were taken away."""
        return replace(self, after=min(self.after, now))


def follow(timer: Timer | None, consumer: Consumer, now: datetime) -> Timer | None:
    """The timer of a consumer as it is now, given what it was at the last look; none without a time table.

    A new time table counts from now on, this moment included; after a pause the times count that come after it.
    Being held changes nothing about which times run, only when.
    """
    timetable = consumer.schedule.timetable
    if timetable is None or not consumer.schedule.has_times:
        return None
    if timer is None or timer.timetable != timetable:
        return Timer(timetable, now - _INSTANT, consumer.paused, consumer.held)
    after = now if timer.paused and not consumer.paused else timer.after
    return Timer(timetable, after, consumer.paused, consumer.held)


def leaves_runs_behind(before: Timer, timer: Timer | None) -> bool:
    """Whether runs that were made ahead must go: another time table, none, a pause, a hold."""
    return not before.rests and (timer is None or timer.rests or timer.timetable != before.timetable)


@dataclass(frozen=True)
class Lead:
    """How far ahead runs are made, for an evaluator that may be down for a while.

    Attributes:
        within: all times of this span,
        at_least: and at least so many,
        at_most: but never more than so many,
        horizon: and none later than this.
    """

    within: timedelta = timedelta(hours=24)
    at_least: int = 3
    at_most: int = 100
    horizon: timedelta = timedelta(days=100)


@dataclass(frozen=True)
class Plan:
    """What a timer has to do.

    Attributes:
        ticks: the times to make runs of, oldest first.
        again: when there may be more to do; none while the timer rests.
    """

    ticks: tuple[Tick, ...]
    again: datetime | None


def plan(timer: Timer, now: datetime, lead: Lead, limit: int = 100) -> Plan:
    """The runs to make now: of every time that was missed, oldest first, then of those ahead.

    Parameters:
        limit: the largest number of ticks; if there are more, `again` is now.
    """
    if timer.rests:
        return Plan((), None)
    ticks: list[Tick] = []
    again = now + _FIRST_WINDOW
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
                return Plan(tuple(ticks), now)
            ticks.append(tick)
    return Plan(tuple(ticks), again)


def ticks_between(timetable: Timetable, after: datetime, until: datetime) -> Iterator[Tick]:
    """The times from `after` (excluded) to `until` (included), few at a time even where a time table knows many."""
    window = _FIRST_WINDOW
    while after < until:
        end = min(after + window, until)
        yield from timetable.ticks_between(after, end)
        after, window = end, min(window * 4, _LONGEST_WINDOW)


def tick_id(deployment_id: UUID, time: datetime) -> UUID:
    """The idempotency key of the run of one time: whoever makes it, there is one."""
    return uuid5(_NAMESPACE, f"{deployment_id}|{time.astimezone(UTC).isoformat()}")
