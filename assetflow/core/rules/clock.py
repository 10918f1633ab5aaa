"""The clock: what happens to timed consumers at an instant, in which order, and which instant comes next. Contract 9.6.

Time acts only at instants that follow from what is recorded: an event's or a decision's instant plus a span, and the
times of timetables. Within one instant: (1) periods end and `until` closes; (2) recordings, deploys, switches and ends
of runs, each with its pass; (3) openings begin and waits are over: a pass; (4) deadlines; (5) what is a span old
expires; then (3) to (5) again until nothing changes. `begin` is (1), `finish` is (3) to (5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from assetflow.core.consumers import Consumer, Decision, MissedDeadline, Receipt, ReceiptStatus, decision_id
from assetflow.core.events import AssetEvent
from assetflow.core.rules.state import QueueKey, State
from assetflow.core.rules.state.clocks import ConsumerClock
from assetflow.core.rules.state.events import place_in_ledger
from assetflow.core.rules.waits import TimedQueue
from assetflow.core.rules.windows import instant_of
from assetflow.core.timing import Opening

_INSTANT = timedelta(microseconds=1)

TargetKeys = Collection[str | None]


def follow(state: State, before: Consumer | None, consumer: Consumer, now: datetime) -> None:
    """Let the clock know a consumer that is new, has other options, or was paused or resumed (9.7, 9.14).

    Parameters:
        before: the consumer as it was; None for a new one.
    """
    opening = consumer.schedule.opening
    if opening is None:
        if before is not None and before.schedule.opening is not None:
            state.clocks.set_consumer(consumer.id, None)
        return
    clock = state.clocks.consumer(consumer.id)
    if clock is None or before is None or before.schedule.opening != opening:
        state.clocks.set_consumer(consumer.id, ConsumerClock(now - _INSTANT))
        _look_at_hours_again(state, consumer, now, over=False)
        return
    if consumer.decides and not before.decides:
        # The moment of a resume itself opens nothing (9.13).
        clock = replace(clock, gone_through=now)
    if before.options.deadline != consumer.options.deadline:
        clock = replace(
            clock, deadlines=_deadlines_of(consumer, opening, clock) if _stands_open(state, consumer) else ()
        )
    state.clocks.set_consumer(consumer.id, clock)
    _look_at_hours_again(state, consumer, now, over=False)


def decide(state: State, consumer: Consumer, key: str | None, now: datetime, *, recorded: bool) -> list[Decision]:
    """Make the decisions that a timed queue leads to: one, or several with `max_events` (9.10).

    Parameters:
        recorded: whether all is recorded that counts at this instant: phase (3), not (2).
    """
    made: list[Decision] = []
    while True:
        queue = TimedQueue(state, consumer, key, now, recorded=recorded)
        if queue.waits().keys() - {"at_latest"}:
            break
        made.append(_decide(state, queue))
        if consumer.options.intake.max_events is None:
            break
    if made:
        _close(state, consumer, key)
    return made


def pass_over_queue(state: State, consumer: Consumer, key: str | None, now: datetime) -> list[Decision]:
    """Make the pass that follows a recording, a deploy, a switch or an end of a run: part (2) of an instant.

    If an earlier instant of the queue is not decided yet, the pass waits until it is.
    """
    if _is_behind(state, consumer, key, now):
        waits = replace(state.clocks.queue(consumer.id, key), deferred=True)
        state.clocks.set_queue(consumer.id, key, replace(waits, due=waits.due or now))
        return []
    made = decide(state, consumer, key, now, recorded=False)
    _look_again(state, consumer, key, now, over=False)
    return made


def decided_until(state: State, consumer: Consumer, key: str | None) -> datetime | None:
    """Return the earliest instant that an event of a queue may have: what is decided stays decided. Contract 9.6."""
    hours = state.clocks.consumer(consumer.id)
    gone = state.clocks.queue(consumer.id, key).gone_through
    moments = [moment for moment in (gone, None if hours is None else hours.gone_through) if moment is not None]
    return max(moments) + _INSTANT if moments else None


def due_at(state: State, consumer: Consumer, keys: TargetKeys) -> datetime | None:
    """Return the next instant at which time may change something for a consumer and some of its queues."""
    hours = state.clocks.consumer(consumer.id)
    found = [None if hours is None else hours.due, *(state.clocks.queue(consumer.id, key).due for key in keys)]
    return min((due for due in found if due is not None), default=None)


def begin(state: State, consumer: Consumer, now: datetime, keys: TargetKeys) -> None:
    """Do part (1) of an instant: periods end, and `until` closes."""
    clock, opening = state.clocks.consumer(consumer.id), consumer.schedule.opening
    if clock is not None and opening is not None and opening.until is not None and clock.is_open:
        closes = opening.until.next_after(clock.gone_through)
        if closes is not None and closes.time <= now:
            state.clocks.set_consumer(consumer.id, replace(clock, is_open=False))
    for key in keys:
        _expire(state, TimedQueue(state, consumer, key, now, recorded=False), before_now=True)


def finish(state: State, consumer: Consumer, now: datetime, keys: TargetKeys) -> list[Decision]:
    """Do parts (3) to (5) of an instant: openings and waits, deadlines, expiry; until nothing changes any more.

    Parameters:
        keys: the queues to look at. An opening opens all queues of the consumer.
    """
    made: list[Decision] = []
    if _open(state, consumer, now):
        keys = {*keys, *state.queues.target_keys(consumer.id)}
    _miss_openings(state, consumer, now, made)
    for key in sorted(keys, key=lambda key: key or ""):
        while _act(state, consumer, key, now, made):
            pass
        clock = state.clocks.queue(consumer.id, key)
        state.clocks.set_queue(consumer.id, key, replace(clock, gone_through=now))
        _look_again(state, consumer, key, now, over=True)
    _look_at_hours_again(state, consumer, now, over=True)
    return made


def run(state: State, queues: Iterable[QueueKey], until: datetime, most: int = 1000) -> tuple[list[Decision], bool]:
    """Go through all instants up to one at which time changes something for these queues, in order.

    Parameters:
        queues: the queues that are due, and those of consumers whose opening hours are due, at least.
        until: the last instant that may be decided: everything that counts up to then is recorded.
        most: how many instants to go through at most.

    Returns:
        The decisions, and whether instants are left.
    """
    made: list[Decision] = []
    keys: dict[int, set[str | None]] = {}
    for number, key in queues:
        keys.setdefault(number, set()).add(key)
    for _ in range(most):
        consumers = {number: consumer for number in keys if (consumer := state.consumers.find(number)) is not None}
        dues = {number: due_at(state, each, keys[number]) for number, each in consumers.items()}
        now = min((due for due in dues.values() if due is not None), default=None)
        if now is None or now > until:
            return made, False
        for number in sorted(number for number, due in dues.items() if due == now):
            made += _run_instant(state, consumers[number], now, keys[number])
            keys[number] |= set(state.queues.target_keys(number)) if consumers[number].schedule.opening else set()
    return made, True


def settle(state: State, consumer: Consumer, now: datetime) -> None:
    """Decide what is due before now, as the consumer was up to now: it is about to change. Contract 9.6."""
    if consumer.is_timed:
        queues = [(consumer.id, key) for key in (None, *state.queues.target_keys(consumer.id))]
        while run(state, queues, now - _INSTANT)[1]:
            pass


def _run_instant(state: State, consumer: Consumer, now: datetime, keys: TargetKeys) -> list[Decision]:
    """Go through one instant, and through the passes that have waited for it."""
    due = [key for key in keys if state.clocks.queue(consumer.id, key).due == now]
    if not consumer.is_timed:
        for key in due:
            state.clocks.set_queue(consumer.id, key, replace(state.clocks.queue(consumer.id, key), due=None))
        return []
    begin(state, consumer, now, due)
    made: list[Decision] = []
    for key in due:
        if state.clocks.queue(consumer.id, key).deferred:
            made += decide(state, consumer, key, now, recorded=False)
    made += finish(state, consumer, now, due)
    for key in due:
        made += _pass_over_deferred(state, consumer, key, now)
    return made


def _pass_over_deferred(state: State, consumer: Consumer, key: str | None, now: datetime) -> list[Decision]:
    """Make the passes that have waited for this instant, until one has to wait for a later one."""
    made: list[Decision] = []
    while (clock := state.clocks.queue(consumer.id, key)).deferred:
        later = _instants_after(state, consumer, key, now)
        state.clocks.set_queue(consumer.id, key, replace(clock, deferred=False))
        if not later:
            break
        now = later[0]
        made += pass_over_queue(state, consumer, key, now)
        if state.clocks.queue(consumer.id, key).deferred:
            break
        if len(later) > 1:
            rest = state.clocks.queue(consumer.id, key)
            state.clocks.set_queue(consumer.id, key, replace(rest, deferred=True))
    return made


def _instants_after(state: State, consumer: Consumer, key: str | None, now: datetime) -> list[datetime]:
    """Return the instants of the queued events that come after an instant, the first one first."""
    queued = state.queues.queued(consumer.id, key)
    return sorted(moment for moment in map(instant_of, queued) if moment > now)


def _is_behind(state: State, consumer: Consumer, key: str | None, now: datetime) -> bool:
    """Return True if instants before the one of a pass, or its first part, are not gone through yet."""
    if state.clocks.queue(consumer.id, key).deferred:
        return True
    due = due_at(state, consumer, [key])
    return due is not None and (due < now or (due == now and state.clocks.begun != now))


def next_deadline(state: State, queue: TimedQueue) -> datetime | None:
    """Return the next deadline that the clock will look at for a queue; None while paused (9.15)."""
    if not queue.consumer.decides:
        return None
    if not queue.consumer.deadline_of_opening:
        return queue.oldest_due
    hours = state.clocks.consumer(queue.consumer.id)
    return None if hours is None else min((due for due, _ in hours.deadlines), default=None)


def _look_again(state: State, consumer: Consumer, key: str | None, now: datetime, *, over: bool) -> None:
    """Work out when the clock has to look at a queue again.

    Parameters:
        over: whether this instant is over for the queue. If not, what has to be done at it is still to come.
    """
    queue = TimedQueue(state, consumer, key, now, recorded=True)
    waits = [each for each in queue.wait_ends() if each > now or (each == now and not over)]
    acts = [max(each, now) for each in queue.act_instants()]
    clock = state.clocks.queue(consumer.id, key)
    if clock.deferred:
        acts += _instants_after(state, consumer, key, now)[:1]
    state.clocks.set_queue(consumer.id, key, replace(clock, due=min([*waits, *acts], default=None)))


def _look_at_hours_again(state: State, consumer: Consumer, now: datetime, *, over: bool) -> None:
    """Work out when the clock has to look at the opening hours of a consumer again."""
    clock, opening = state.clocks.consumer(consumer.id), consumer.schedule.opening
    if clock is None or opening is None:
        return
    after = now if over else now - _INSTANT
    ticks = [opening.timetable.next_after(after)]
    if opening.until is not None and clock.is_open:
        ticks.append(opening.until.next_after(after))
    found = [*(tick.time for tick in ticks if tick is not None), *(max(due, now) for due, _ in clock.deadlines)]
    state.clocks.set_consumer(consumer.id, replace(clock, due=min(found, default=None)))


def _act(state: State, consumer: Consumer, key: str | None, now: datetime, made: list[Decision]) -> bool:
    """Do what comes next of (3) to (5) for one queue; return True if anything changed."""
    decided = decide(state, consumer, key, now, recorded=True)
    made += decided
    queue = TimedQueue(state, consumer, key, now, recorded=True)
    return bool(decided) or _miss_oldest(state, queue) or _expire(state, queue, before_now=False)


def _decide(state: State, queue: TimedQueue) -> Decision:
    consumer, key = queue.consumer, queue.target_key
    events = tuple(sorted(queue.events[: consumer.options.intake.max_events], key=place_in_ledger))
    hours = state.clocks.consumer(consumer.id)
    decision = Decision(
        decision_id(consumer.deployment_id, key, (event.id for event in events)),
        consumer.id,
        consumer.deployment_id,
        key,
        events,
        queue.now,
        opening=None if hours is None else hours.opened,
        by_deadline=state.clocks.queue(consumer.id, key).overdue,
    )
    state.decide(decision)
    _set_overdue(state, consumer, key, overdue=False)
    return decision


def _open(state: State, consumer: Consumer, now: datetime) -> bool:
    """Let an opening begin that falls on this instant; while paused, it opens nothing (9.13)."""
    clock, opening = state.clocks.consumer(consumer.id), consumer.schedule.opening
    if clock is None or opening is None:
        return False
    latest = opening.timetable.previous_before(now + _INSTANT)
    opens = latest is not None and latest.time > clock.gone_through and consumer.decides
    clock = replace(clock, gone_through=max(now, clock.gone_through))
    if latest is not None and opens:
        clock = replace(clock, opened=latest.time, is_open=True)
        clock = replace(clock, deadlines=(*clock.deadlines, *_deadlines_of(consumer, opening, clock)))
    state.clocks.set_consumer(consumer.id, clock)
    return opens


def _deadlines_of(consumer: Consumer, opening: Opening, clock: ConsumerClock) -> tuple[tuple[datetime, datetime], ...]:
    """Return the deadline of the latest opening, if the consumer has one of that kind."""
    deadline = consumer.options.deadline
    if deadline is None or clock.opened is None or not consumer.deadline_of_opening:
        return ()
    due = deadline.of_opening(clock.opened, opening)
    return () if due is None else ((due, clock.opened),)


def _miss_openings(state: State, consumer: Consumer, now: datetime, made: list[Decision]) -> None:
    """Look at the deadlines of openings that are due: first comes the pass, which may still decide in time (9.8)."""
    clock, deadline = state.clocks.consumer(consumer.id), consumer.options.deadline
    if clock is None or deadline is None or not any(due <= now for due, _ in clock.deadlines):
        return
    made += decide(state, consumer, None, now, recorded=True)
    while (clock := state.clocks.consumer(consumer.id)) is not None:
        due = min((due for due, _ in clock.deadlines), default=None)
        if due is None or due > now:
            return
        gone = next(each for each in clock.deadlines if each[0] == due)
        rest = tuple(each for each in clock.deadlines if each != gone)
        state.clocks.set_consumer(consumer.id, replace(clock, deadlines=rest))
        if consumer.decides:
            _miss(state, TimedQueue(state, consumer, None, now, recorded=True), due)


def _miss_oldest(state: State, queue: TimedQueue) -> bool:
    """Look at the deadline of the oldest event; return True if it was missed."""
    due = queue.oldest_due
    if due is None or due > queue.now or not queue.consumer.decides:
        return False
    consumer, key = queue.consumer, queue.target_key
    told = replace(state.clocks.queue(consumer.id, key), told=place_in_ledger(queue.events[0]))
    state.clocks.set_queue(consumer.id, key, told)
    _miss(state, queue, due)
    return True


def _miss(state: State, queue: TimedQueue, due: datetime) -> None:
    consumer, key, deadline = queue.consumer, queue.target_key, queue.consumer.options.deadline
    assert deadline is not None, "only a consumer with a deadline can miss it"
    state.changes.missed.append(MissedDeadline(consumer.id, key, due, queue.now, deadline.then, len(queue.events)))
    if deadline.then == "run" and queue.events:
        _set_overdue(state, consumer, key, overdue=True)
    elif deadline.then == "skip":
        for event in queue.events:
            _drop(state, queue, event, "skipped")
        _close(state, consumer, key)


def _expire(state: State, queue: TimedQueue, *, before_now: bool) -> bool:
    """Let events expire that can count for nothing any more; return True if there are any.

    Parameters:
        before_now: in (1), a span that ends now has not ended, whereas a period has.
    """
    margin = _INSTANT if before_now else timedelta()
    void = [event for event, moment in queue.expiries(margin) if moment <= queue.now]
    for event in void:
        _drop(state, queue, event, "expired")
    return bool(void)


def _drop(state: State, queue: TimedQueue, event: AssetEvent, status: ReceiptStatus) -> None:
    consumer, key = queue.consumer, queue.target_key
    state.write(event, Receipt(place_in_ledger(event), event.uri, consumer.id, status, key, at=queue.now))


def _close(state: State, consumer: Consumer, key: str | None) -> None:
    """Close the present opening for one queue, and settle its deadlines (9.7, 9.8)."""
    hours = state.clocks.consumer(consumer.id)
    if hours is not None:
        state.clocks.set_queue(consumer.id, key, replace(state.clocks.queue(consumer.id, key), closed=hours.opened))
        state.clocks.set_consumer(consumer.id, replace(hours, deadlines=()))


def fill(state: State, consumer: Consumer, key: str | None) -> None:
    """Let the clock know that an event comes into a queue. A missed deadline ends when a queue was empty (9.8)."""
    if not state.queues.pending(consumer.id, key):
        _set_overdue(state, consumer, key, overdue=False)


def _set_overdue(state: State, consumer: Consumer, key: str | None, *, overdue: bool) -> None:
    clock = state.clocks.queue(consumer.id, key)
    if clock.overdue != overdue:
        state.clocks.set_queue(consumer.id, key, replace(clock, overdue=overdue))


def _stands_open(state: State, consumer: Consumer) -> bool:
    hours = state.clocks.consumer(consumer.id)
    return hours is not None and hours.is_open and state.clocks.queue(consumer.id, None).closed != hours.opened
