"""Deadlines: when one is missed, and what that does: tell, run with what is there, or skip it. Contract 9.8."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from assetflow.core.rules import opening_hours
from assetflow.core.rules.state import State
from assetflow.core.rules.state.names import place_in_ledger
from assetflow.core.rules.waits import TimedQueue
from assetflow.core.values.consumers import Consumer, MissedDeadline


def next_deadline(state: State, queue: TimedQueue) -> datetime | None:
    """Return the next deadline that the clock will look at for a queue; `None` while paused (9.15)."""
    if not queue.consumer.decides:
        return None
    if not queue.consumer.deadline_of_opening:
        return queue.oldest_due
    hours = state.clocks.consumer(queue.consumer.id)
    return None if hours is None else min((due for due, _ in hours.deadlines), default=None)


def is_opening_due(state: State, consumer: Consumer, now: datetime) -> bool:
    """Return True if a deadline of an opening is due and not settled."""
    clock = state.clocks.consumer(consumer.id)
    if consumer.no_earlier(now) > now:
        return False
    return consumer.options.deadline is not None and clock is not None and any(due <= now for due, _ in clock.deadlines)


def miss_openings(state: State, queue: TimedQueue) -> None:
    """Miss the deadlines of openings that are due."""
    consumer = queue.consumer
    while (clock := state.clocks.consumer(consumer.id)) is not None:
        due = min((due for due, _ in clock.deadlines), default=None)
        if due is None or due > queue.now:
            return
        gone = next(each for each in clock.deadlines if each[0] == due)
        rest = tuple(each for each in clock.deadlines if each != gone)
        state.clocks.set_consumer(consumer.id, replace(clock, deadlines=rest))
        _miss(state, queue, due)


def miss_oldest(state: State, queue: TimedQueue) -> bool:
    """Look at the deadline of the oldest event; return True if it was missed."""
    due, oldest = queue.oldest_due, queue.oldest
    if due is None or oldest is None or queue.consumer.no_earlier(due) > queue.now or not queue.consumer.decides:
        return False
    consumer, key = queue.consumer, queue.target_key
    told = replace(state.clocks.queue(consumer.id, key), told=place_in_ledger(oldest))
    state.clocks.set_queue(consumer.id, key, told)
    _miss(state, queue, due)
    return True


def fill(state: State, consumer: Consumer, key: str | None) -> None:
    """Note that an event enters a queue; if the queue was empty, a missed deadline ends."""
    if not state.queues.pending(consumer.id, key):
        set_overdue(state, consumer, key, overdue=False)


def follow(state: State, consumer: Consumer) -> None:
    """Follow a consumer that has other options: without a deadline that says "run", none that was missed does."""
    deadline = consumer.options.deadline
    if deadline is None or deadline.then != "run":
        for key in state.queues.target_keys(consumer.id):
            set_overdue(state, consumer, key, overdue=False)


def set_overdue(state: State, consumer: Consumer, key: str | None, *, overdue: bool) -> None:
    """Note whether a deadline of a queue is missed, so that it runs with what is there."""
    clock = state.clocks.queue(consumer.id, key)
    if clock.overdue != overdue:
        state.clocks.set_queue(consumer.id, key, replace(clock, overdue=overdue))


def _miss(state: State, queue: TimedQueue, due: datetime) -> None:
    consumer, key, deadline = queue.consumer, queue.target_key, queue.consumer.options.deadline
    assert deadline is not None, "only a consumer with a deadline can miss it"
    late = (due, queue.now, deadline.then, len(queue.events), queue.missing)
    state.changes.missed.append(MissedDeadline(consumer.id, key, *late))
    if deadline.then == "run" and queue.events:
        set_overdue(state, consumer, key, overdue=True)
    elif deadline.then == "skip":
        for event in list(queue.events):
            queue.drop(event, "skipped")
        queue.line.judge_anew()
        opening_hours.close(state, consumer, key)
