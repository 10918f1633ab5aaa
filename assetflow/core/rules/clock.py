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
from heapq import heapify, heappop, heappush

from assetflow.core.rules import opening_hours, waits
from assetflow.core.rules.evaluation import end_of
from assetflow.core.rules.state import QueueKey, State
from assetflow.core.rules.state.names import place_in_ledger
from assetflow.core.rules.state.state import decision_id
from assetflow.core.rules.waits import Expiry, Line, Lines, TimedQueue
from assetflow.core.values.consumers import Consumer, Decision

_INSTANT = timedelta(microseconds=1)

TargetKeys = Collection[str | None]


def pass_over_queue(
    state: State, consumer: Consumer, key: str | None, now: datetime, *, recorded_from: datetime | None = None
) -> list[Decision]:
    """Make the pass that follows a recording, a deploy, a switch or an end of a run: part (2) of an instant.

    If an earlier instant of the queue is not decided yet, the pass waits until it is.

    Parameters:
        recorded_from: the earliest instant of the events that were recorded; `None` after anything else.
    """
    if _is_behind(state, consumer, key, now):
        defer(state, consumer, key, now)
        return []
    queue = TimedQueue(state, consumer, key, now, recorded=False)
    if recorded_from is not None and queue.cannot_be_decided_by(recorded_from):
        _look_in_time(state, queue, recorded_from)
        return []
    made, left = _decide_on(queue, state)
    _look_again(state, left, over=False)
    if _is_cut_off(state, left):
        defer(state, consumer, key, now)
    return made


def defer(state: State, consumer: Consumer, key: str | None, now: datetime) -> None:
    """Let the pass of an instant wait until the clock goes through it."""
    clock = state.clocks.queue(consumer.id, key)
    due = now if clock.due is None else min(clock.due, now)
    state.clocks.set_queue(consumer.id, key, replace(clock, deferred=True, due=due))


def go_on_after(state: State, consumer: Consumer, key: str | None, decided: datetime) -> None:
    """Let what is queued from now on count after an instant that is decided. Contract 9.6."""
    clock = state.clocks.queue(consumer.id, key)
    gone = decided if clock.gone_through is None else max(decided, clock.gone_through)
    state.clocks.set_queue(consumer.id, key, replace(clock, gone_through=gone))


def decided_until(state: State, consumer: Consumer, key: str | None) -> datetime | None:
    """Return the earliest instant that an event of a queue may have: what is decided stays decided. Contract 9.6."""
    hours = state.clocks.consumer(consumer.id)
    gone = state.clocks.queue(consumer.id, key).gone_through
    # Before the first opening, nothing is decided.
    opened = None if hours is None or hours.opened is None else hours.gone_through
    if opened == state.clocks.begun:
        # A resume goes through its moment, but other steps of this instant are still to come.
        opened = None
    moments = [moment for moment in (gone, opened) if moment is not None]
    return max(moments) + _INSTANT if moments else None


def due_at(state: State, consumer: Consumer, keys: TargetKeys) -> datetime | None:
    """Return the next instant at which time may change something for a consumer and some of its queues."""
    hours = state.clocks.consumer(consumer.id)
    found = [None if hours is None else hours.due, *(state.clocks.queue(consumer.id, key).due for key in keys)]
    return min((due for due in found if due is not None), default=None)


def begin(state: State, consumer: Consumer, now: datetime, keys: TargetKeys, lines: Lines | None = None) -> None:
    """Do part (1) of an instant: periods end, and `until` closes.

    Parameters:
        lines: the queues in the order of time, if somebody goes through several of their instants.
    """
    lines = Lines(state, consumer) if lines is None else lines
    opening_hours.close_at_until(state, consumer, now)
    for key in keys:
        # No event of this instant counts yet.
        queue = TimedQueue(state, consumer, key, now, recorded=False, upto=0, line=lines[key])
        # In (1), a span that ends now has not ended, whereas a period has.
        _drop_expired(queue, [each for each in queue.line.expiries(now, _INSTANT) if each[1] == now])


def finish(
    state: State, consumer: Consumer, now: datetime, keys: TargetKeys, lines: Lines | None = None
) -> list[Decision]:
    """Do parts (3) to (5) of an instant: openings and waits, deadlines, expiry; until nothing changes any more.

    Parameters:
        keys: the queues to look at. An opening opens all queues of the consumer.
        lines: as in `begin`.
    """
    lines = Lines(state, consumer) if lines is None else lines
    made: list[Decision] = []
    if consumer.decides and opening_hours.open_now(state, consumer, now):
        keys = {*keys, *state.queues.target_keys(consumer.id)}
    if consumer.decides and waits.is_opening_due(state, consumer, now):
        queue = TimedQueue(state, consumer, None, now, recorded=True, line=lines[None])
        # The pass comes first: it may still decide in time.
        decided, queue = _decide_on(queue, state)
        made += decided
        if not _is_cut_off(state, queue):
            waits.miss_openings(state, queue)
        # What the deadline asks for is done at the same instant, also where nothing else is due for the queue.
        keys = {*keys, None}
    for key in sorted(keys, key=lambda key: key or ""):
        left = _act(state, TimedQueue(state, consumer, key, now, recorded=True, line=lines[key]), made)
        if _is_cut_off(state, left):
            defer(state, consumer, key, now)
            continue
        go_on_after(state, consumer, key, now)
        _look_again(state, left, over=True)
    opening_hours.look_again(state, consumer, now)
    return made


def run(state: State, queues: Iterable[QueueKey], until: datetime, most: int = 1000) -> tuple[list[Decision], bool]:
    """Go through all instants up to one at which time changes something for these queues, in order.

    Parameters:
        queues: the queues that are due, and those of consumers whose opening hours are due, at least.
        until: the last instant that may be decided: everything that counts up to then is recorded.
        most: how many instants to go through at most, those of each consumer counted.

    Returns:
        The decisions, and whether instants are left.
    """
    made: list[Decision] = []
    keys: dict[int, set[str | None]] = {}
    for number, key in queues:
        keys.setdefault(number, set()).add(key)
    consumers = {number: consumer for number in keys if (consumer := state.consumers.find(number)) is not None}
    for number in consumers:
        keys[number] |= _opened_with(state, number, until)
    dues = ((due_at(state, each, keys[number]), number) for number, each in consumers.items())
    waiting = [(due, number) for due, number in dues if due is not None]
    lines = {number: Lines(state, consumer) for number, consumer in consumers.items()}
    heapify(waiting)
    for _ in range(most):
        if not waiting or waiting[0][0] > until:
            return made, False
        now, number = heappop(waiting)
        consumer = consumers[number]
        made += _run_instant(state, consumer, now, keys[number], lines[number])
        if state.changes.is_full:
            break
        due = due_at(state, consumer, keys[number])
        if due is not None:
            heappush(waiting, (due, number))
    return made, True


def _opened_with(state: State, number: int, until: datetime) -> set[str | None]:
    """Return all queues of a consumer that may open: an opening comes after the earlier instants of each of them."""
    hours = state.clocks.consumer(number)
    if hours is None or hours.due is None or hours.due > until:
        return set()
    keys = set(state.queues.target_keys(number))
    state.clocks.load([(number, key) for key in keys])
    return keys


def settle(state: State, consumer: Consumer, now: datetime) -> list[Decision]:
    """Decide what came before a change by what counted until now: what was due, and passes of now that had to wait."""
    if not consumer.is_timed:
        return []
    keys = (None, *state.queues.target_keys(consumer.id))
    made: list[Decision] = []
    # Nothing of it can be left for later.
    most, state.changes.most_decisions = state.changes.most_decisions, None
    are_left = True
    while are_left:
        more, are_left = run(state, [(consumer.id, key) for key in keys], now - _INSTANT)
        made += more
    waiting = [key for key in keys if state.clocks.queue(consumer.id, key).deferred]
    lines = Lines(state, consumer)
    begin(state, consumer, now, waiting, lines)
    for key in waiting:
        made += _pass_over_recordings(state, consumer, key, now, lines[key])
        _stop_waiting(state, consumer, key, lines[key])
        _look_again(state, TimedQueue(state, consumer, key, now, recorded=False, line=lines[key]), over=False)
    state.changes.most_decisions = most
    return made


def look_at(state: State, consumer: Consumer, now: datetime) -> None:
    """Look at the queues of a consumer at this instant: make the pass of a change that was found late (9.6)."""
    for key in state.queues.target_keys(consumer.id):
        clock = state.clocks.queue(consumer.id, key)
        state.clocks.set_queue(consumer.id, key, replace(clock, due=now if clock.due is None else min(clock.due, now)))


def _run_instant(state: State, consumer: Consumer, now: datetime, keys: TargetKeys, lines: Lines) -> list[Decision]:
    """Go through one instant, and through the passes that have waited for it."""
    due = [key for key in keys if state.clocks.queue(consumer.id, key).due == now]
    if not consumer.is_timed:
        for key in due:
            state.clocks.set_queue(consumer.id, key, replace(state.clocks.queue(consumer.id, key), due=None))
        return []
    begin(state, consumer, now, due, lines)
    made: list[Decision] = []
    for key in due:
        if state.clocks.queue(consumer.id, key).deferred:
            made += _pass_over_recordings(state, consumer, key, now, lines[key])
    made += finish(state, consumer, now, due, lines)
    for key in due:
        # What is cut off goes on at this instant.
        if not state.changes.is_full or state.clocks.queue(consumer.id, key).due != now:
            _stop_waiting(state, consumer, key, lines[key])
    return made


def _stop_waiting(state: State, consumer: Consumer, key: str | None, line: Line) -> None:
    """Note that no pass of a queue has to wait any more, if none does after this instant."""
    clock = state.clocks.queue(consumer.id, key)
    if clock.deferred and line.next_instant is None:
        state.clocks.set_queue(consumer.id, key, replace(clock, deferred=False))


def _pass_over_recordings(
    state: State, consumer: Consumer, key: str | None, now: datetime, line: Line
) -> list[Decision]:
    """Make the passes that have waited for this instant: one for each of its recordings, in the order of the ledger."""
    places = [place_in_ledger(event) for event in line.coming(now)]
    made: list[Decision] = []
    for last in state.events.ends_of_recordings(places):
        queue = TimedQueue(state, consumer, key, now, recorded=False, upto=last, line=line)
        made += _decide_on(queue, state)[0]
    return made


def _is_behind(state: State, consumer: Consumer, key: str | None, now: datetime) -> bool:
    """Return True if instants before the one of a pass, or its first part, are not gone through yet."""
    clock, hours = state.clocks.queue(consumer.id, key), state.clocks.consumer(consumer.id)
    if clock.deferred:
        return True
    dues = [clock.due] if hours is None else [clock.due, hours.due]
    return any(due is not None and (due < now or (due == now and state.clocks.begun != now)) for due in dues)


def _look_in_time(state: State, queue: TimedQueue, recorded_from: datetime) -> None:
    """Have the clock look at a queue when time may change something for its new events.

    Of the older ones the clock knows. It may look earlier than it has to, which changes nothing.
    """
    consumer, key = queue.consumer, queue.target_key
    condition = consumer.schedule.condition
    assert condition is not None, "only a schedule on assets has a queue"
    ends = [end_of(gate, recorded_from) for _, gate, _ in condition.gates if gate.is_time_gate]
    if consumer.decides:
        ends += _ends_of_waits(queue, recorded_from)
    if consumer.deployed is not None and consumer.deployed > recorded_from:
        ends.append(consumer.deployed)
    clock = state.clocks.queue(consumer.id, key)
    due = min([*ends, *([] if clock.due is None else [clock.due])], default=None)
    if due != clock.due:
        state.clocks.set_queue(consumer.id, key, replace(clock, due=due))


def _ends_of_waits(queue: TimedQueue, recorded_from: datetime) -> list[datetime]:
    """Return when waits of new events may be over, and their deadline due."""
    deadline, intake = queue.consumer.options.deadline, queue.consumer.options.intake
    ends = [queue.cool_at] if queue.is_cooling else []
    spans = [] if queue.lacks_updates else [intake.debounce, intake.max_wait]
    if deadline is not None and not queue.consumer.deadline_of_opening:
        spans.append(deadline.after)
    ends += [recorded_from + span for span in spans if span is not None]
    return [end for end in ends if end is not None]


def _look_again(state: State, queue: TimedQueue, *, over: bool) -> None:
    """Work out when the clock has to look at a queue again.

    Parameters:
        queue: the queue as it is left.
        over: whether this instant is over for the queue. If not, what has to be done at it is still to come.
    """
    consumer, key, now = queue.consumer, queue.target_key, queue.now
    waits = [each for each in queue.wait_ends() if each > now or (each == now and not over)]
    acts = [max(each, now) for each in queue.act_instants()]
    clock = state.clocks.queue(consumer.id, key)
    if clock.deferred and queue.line.next_instant is not None:
        acts.append(queue.line.next_instant)
    if consumer.deployed is not None and consumer.deployed > now:
        acts.append(consumer.deployed)
    due = min([*waits, *acts], default=None)
    if due != clock.due:
        state.clocks.set_queue(consumer.id, key, replace(clock, due=due))


def _act(state: State, queue: TimedQueue, made: list[Decision]) -> TimedQueue:
    """Do (3) to (5) for one queue until nothing changes, and return the queue as it is left."""
    while True:
        decided, queue = _decide_on(queue, state)
        made += decided
        if _is_cut_off(state, queue):
            return queue
        if not (decided or waits.miss_oldest(state, queue) or _drop_expired(queue, queue.line.expiries(queue.now))):
            return queue
        queue = queue.again()


def _decide_on(queue: TimedQueue, state: State) -> tuple[list[Decision], TimedQueue]:
    """Make the decisions that a queue leads to, and return them with the queue as they leave it."""
    consumer = queue.consumer
    made: list[Decision] = []
    while queue.is_ready and not _is_cut_off(state, queue):
        made.append(_decide(state, queue))
        queue = queue.again()
        if consumer.options.intake.max_events is None:
            break
    if made and not _is_cut_off(state, queue):
        opening_hours.close(state, consumer, queue.target_key)
    return made, queue


def _is_cut_off(state: State, queue: TimedQueue) -> bool:
    """Return True if decisions on a queue that `max_events` splits are left to a later unit of work."""
    return state.changes.is_full and queue.consumer.options.intake.max_events is not None and queue.is_ready


def _decide(state: State, queue: TimedQueue) -> Decision:
    consumer, key = queue.consumer, queue.target_key
    if not state.clocks.queue(consumer.id, key).overdue:
        # A redeploy, or the removal of what a gate held over, may leave some that are too old already.
        _drop_expired(queue, queue.line.expiries(queue.now, _INSTANT))
    events = queue.line.take(consumer.options.intake.max_events)
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
        scheduled=_start_of_run(state, consumer, key, queue.now),
    )
    state.decide(decision)
    waits.set_overdue(state, consumer, key, overdue=False)
    return decision


def _start_of_run(state: State, consumer: Consumer, key: str | None, now: datetime) -> datetime | None:
    """Return when a run is to start: if it is decided on late, a cooldown after the last. `None` for at once (9.11)."""
    cooldown = consumer.cooldown
    started = None if cooldown is None else state.clocks.queue(consumer.id, key).started
    if cooldown is None or started is None or started + cooldown <= state.clocks.now_or(now):
        return None
    return started + cooldown


def _drop_expired(queue: TimedQueue, expired: Collection[Expiry]) -> bool:
    """Let events expire that can count for nothing any more; return True if there are any."""
    for event, _ in expired:
        queue.drop(event, "expired")
    return bool(expired)
