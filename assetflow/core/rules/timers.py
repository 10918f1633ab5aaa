"""Which times of a consumer's timetable get a run (contract 6.1).

The simulator and the evaluator keep a `Timer` for each consumer with a timetable. The simulator runs the times that
have passed. The evaluator schedules runs in advance, so that they start on time even while no evaluator is running.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from assetflow.core.time.timetables import Tick, Timetable
from assetflow.core.values.consumers import Consumer

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
