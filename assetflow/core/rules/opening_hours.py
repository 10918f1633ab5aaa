"""Opening hours: when a schedule opens, and when it closes for a consumer or one of its queues. Contract 9.7."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from assetflow.core.rules.state import State
from assetflow.core.rules.state.changes import ConsumerClock
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.timing import Deadline, Opening, next_time

_INSTANT = timedelta(microseconds=1)


def follow(state: State, before: Consumer | None, consumer: Consumer, now: datetime) -> None:
    """Follow a consumer that is new, has other options, or was paused or resumed (9.7, 9.14).

    Parameters:
        before: the consumer as it was; `None` for a new one.
    """
    opening = consumer.schedule.opening
    if opening is None:
        if before is not None and before.schedule.opening is not None:
            state.clocks.set_consumer(consumer.id, None)
        return
    clock = state.clocks.consumer(consumer.id)
    if clock is None or before is None or before.schedule.opening != opening:
        state.clocks.set_consumer(consumer.id, ConsumerClock(now - _INSTANT))
        look_again(state, consumer, now)
        return
    if consumer.decides and not before.decides:
        clock = resumed(state, consumer, now) or clock
    if _deadline_of(before) != _deadline_of(consumer):
        is_open = _stands_open(state, consumer, clock)
        clock = replace(clock, deadlines=_deadlines_of(consumer, opening, clock) if is_open else ())
    state.clocks.set_consumer(consumer.id, clock)
    look_again(state, consumer, now)


def resumed(state: State, consumer: Consumer, now: datetime) -> ConsumerClock | None:
    """Return the opening hours of a consumer as a resume at this instant makes them; `None` if it has none (9.13).

    The instant belongs to the pause.
    """
    clock, opening = state.clocks.consumer(consumer.id), consumer.schedule.opening
    if clock is None or opening is None:
        return None
    latest = _latest(opening, clock, now)
    closes = next_time(opening.until, latest or clock.gone_through)
    is_open = (clock.is_open or latest is not None) and (closes is None or closes > now)
    coming = tuple(each for each in clock.deadlines if each[0] > now)
    clock = replace(clock, gone_through=now, is_open=is_open, deadlines=coming)
    return clock if latest is None else _opened(state, consumer, opening, replace(clock, opened=latest), now)


def open_now(state: State, consumer: Consumer, now: datetime) -> bool:
    """Let an opening begin that falls on this instant."""
    clock, opening = state.clocks.consumer(consumer.id), consumer.schedule.opening
    if clock is None or opening is None:
        return False
    latest = _latest(opening, clock, now)
    opens = latest is not None and latest == consumer.no_earlier(latest)
    clock = replace(clock, gone_through=max(now, clock.gone_through))
    if opens:
        clock = _opened(state, consumer, opening, replace(clock, opened=latest, is_open=True), now)
    state.clocks.set_consumer(consumer.id, clock)
    return opens


def close_at_until(state: State, consumer: Consumer, now: datetime) -> None:
    """Let `until` close the opening for all queues, if it falls on this instant."""
    clock, opening = state.clocks.consumer(consumer.id), consumer.schedule.opening
    if clock is not None and opening is not None and clock.is_open:
        closes = next_time(opening.until, clock.gone_through)
        if closes is not None and closes <= now:
            state.clocks.set_consumer(consumer.id, replace(clock, is_open=False))


def close(state: State, consumer: Consumer, key: str | None) -> None:
    """Close the present opening for one queue, and settle its deadlines (9.7, 9.8)."""
    hours = state.clocks.consumer(consumer.id)
    if hours is not None:
        state.clocks.set_queue(consumer.id, key, replace(state.clocks.queue(consumer.id, key), closed=hours.opened))
        state.clocks.set_consumer(consumer.id, replace(hours, deadlines=()))


def close_answered(state: State, consumer: Consumer, key: str | None, made: datetime) -> None:
    """Close the opening that a decision of an earlier ledger has answered, and settle its deadline.

    The clock may not have gone through it yet. Openings before it count as told (8.17).
    """
    opening, hours = consumer.schedule.opening, state.clocks.consumer(consumer.id)
    answered = None if opening is None else opening.timetable.previous_before(made + _INSTANT)
    clock = state.clocks.queue(consumer.id, key)
    if hours is None or answered is None or clock.has_closed(answered.time):
        return
    state.clocks.set_queue(consumer.id, key, replace(clock, closed=answered.time))
    left = tuple(each for each in hours.deadlines if each[1] > answered.time)
    state.clocks.set_consumer(consumer.id, replace(hours, deadlines=left))


def look_again(state: State, consumer: Consumer, now: datetime) -> None:
    """Work out when the clock has to look at a consumer's opening hours again: while paused, not before the resume."""
    clock, opening = state.clocks.consumer(consumer.id), consumer.schedule.opening
    if clock is None or opening is None:
        return
    if not consumer.decides:
        state.clocks.set_consumer(consumer.id, replace(clock, due=None))
        return
    opens = next_time(opening.timetable, clock.gone_through)
    closes = next_time(opening.until, clock.gone_through) if clock.is_open else None
    found = [moment for moment in (opens, closes) if moment is not None]
    found += [consumer.no_earlier(max(due, now)) for due, _ in clock.deadlines]
    state.clocks.set_consumer(consumer.id, replace(clock, due=min(found, default=None)))


def _deadlines_of(consumer: Consumer, opening: Opening, clock: ConsumerClock) -> tuple[tuple[datetime, datetime], ...]:
    """Return the deadline of the latest opening, if the consumer has one of that kind."""
    deadline = _deadline_of(consumer)
    if deadline is None or clock.opened is None:
        return ()
    due = deadline.of_opening(clock.opened, opening)
    return () if due is None else ((due, clock.opened),)


def _deadline_of(consumer: Consumer) -> Deadline | None:
    """Return the deadline that a consumer has for each opening; `None` for one of another kind, too."""
    return consumer.options.deadline if consumer.deadline_of_opening else None


def _latest(opening: Opening, clock: ConsumerClock, now: datetime) -> datetime | None:
    """Return the latest opening up to an instant, if it is not gone through yet."""
    tick = opening.timetable.previous_before(now + _INSTANT)
    return None if tick is None or tick.time <= clock.gone_through else tick.time


def _opened(state: State, consumer: Consumer, opening: Opening, clock: ConsumerClock, now: datetime) -> ConsumerClock:
    """Return the hours of a consumer that has opened, with the deadline of the opening if it is still to come."""
    if not _stands_open(state, consumer, clock):
        return clock
    new = {due: opened for due, opened in _deadlines_of(consumer, opening, clock) if due > now}
    # Openings with one deadline miss it together.
    return replace(clock, deadlines=tuple((dict(clock.deadlines) | new).items()))


def _stands_open(state: State, consumer: Consumer, hours: ConsumerClock | None) -> bool:
    return hours is not None and hours.is_open and not state.clocks.queue(consumer.id, None).has_closed(hours.opened)
