"""Why a timed queue is not decided on now, and what a missed deadline does: the one place. Contract 9.7 to 9.15."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import takewhile
from typing import Literal

from assetflow.core.rules import opening_hours
from assetflow.core.rules.evaluation import Reach, evaluate, in_order, instant_of
from assetflow.core.rules.state import State
from assetflow.core.rules.state.changes import ConsumerClock, QueueClock
from assetflow.core.rules.state.names import place_in_ledger
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, MissedDeadline, Receipt, ReceiptStatus
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.timing import next_time

Reason = Literal["resume", "update", "opening", "condition", "run", "cooldown", "quiet", "more", "at_latest"]

Waits = Mapping[Reason, datetime | None]
"""What a queue waits for, each with the instant at which that is over, or `None` if nobody knows it."""
_NOTHING = timedelta()

Expiry = tuple[AssetEvent, datetime]
"""An event of a queue, and from when on it can count for nothing."""


class Line:
    """The events of one queue, of which those up to some instant count.

    Whoever takes an event out of the queue takes it out of the line.

    Attributes:
        events: the events that count, by place in the ledger, oldest first.
        reach: what they satisfy.
    """

    def __init__(self, state: State, consumer: Consumer, target_key: str | None) -> None:
        self.events: OrderedDict[int, AssetEvent] = OrderedDict()
        self._ahead = deque(in_order(state.queues.queued(consumer.id, target_key)))
        self._schedule = consumer.schedule
        self._target_key = target_key
        self._tokens_of = state.names.tokens_of
        self._by_uri: dict[str, deque[AssetEvent]] = {}
        self.judge_anew()

    def judge_anew(self) -> None:
        """Judge the events that count as if there had never been others."""
        self.reach = Reach(self._schedule, self._target_key, self.events.values(), self._tokens_of)

    def count(self, now: datetime, upto: int | None) -> None:
        """Count the events up to an instant, of this instant only those up to a place in the ledger; never fewer."""
        while self._ahead and self._counts(self._ahead[0], now, upto):
            event = self._ahead.popleft()
            self.events[place_in_ledger(event)] = event
            self.reach.read(event)
            if self.reach.condition.has_time_gates:
                self._by_uri.setdefault(event.uri, deque()).append(event)

    def coming(self, now: datetime) -> list[AssetEvent]:
        """Return the events of this instant that do not count yet."""
        return list(takewhile(lambda event: instant_of(event) == now, self._ahead))

    @property
    def newest(self) -> AssetEvent | None:
        """The newest event that counts."""
        return next(reversed(self.events.values()), None)

    @property
    def next_instant(self) -> datetime | None:
        """The instant of the first event that does not count yet; `None` if all do."""
        return instant_of(self._ahead[0]) if self._ahead else None

    def take(self, most: int | None) -> tuple[AssetEvent, ...]:
        """Take the oldest events out for a decision, at most so many, and return them in the order of the ledger."""
        count = len(self.events) if most is None else min(most, len(self.events))
        taken = [self.events.popitem(last=False)[1] for _ in range(count)]
        self.judge_anew()
        return tuple(sorted(taken, key=place_in_ledger))

    def drop(self, event: AssetEvent) -> None:
        """Take out an event that can count for nothing any more."""
        del self.events[place_in_ledger(event)]
        if self.reach.condition.nests_time_gates:
            # An inner gate may have held with it.
            self.judge_anew()

    def expiries(self, until: datetime | None = None, margin: timedelta = _NOTHING) -> list[Expiry]:
        """Return the events that can count for nothing from some instant on, if nothing else happens (9.5).

        Parameters:
            until: the last instant that is asked for; `None` for all.
            margin: how long after the end of a span an event is too old for it.
        """
        found: list[Expiry] = []
        for uri in self._by_uri:
            found += takewhile(lambda each: until is None or each[1] <= until, self._expiries_of(uri, margin))
        return sorted(found, key=lambda each: (instant_of(each[0]), each[0].sequence))

    @property
    def next_expiry(self) -> datetime | None:
        """When the first event expires; `None` if none does."""
        firsts = (next(self._expiries_of(uri, _NOTHING), None) for uri in self._by_uri)
        return min((each[1] for each in firsts if each is not None), default=None)

    def _expiries_of(self, uri: str, margin: timedelta) -> Iterator[Expiry]:
        """Yield the events of one asset that expire; the older ones expire first."""
        queued = self._by_uri[uri]
        while queued and place_in_ledger(queued[0]) not in self.events:
            queued.popleft()
        for event in () if self.reach.is_settled else queued:
            lost = list(self.reach.too_old(event, margin))
            known = [moment for moment in lost if moment is not None]
            if not lost or len(known) < len(lost):
                return
            if place_in_ledger(event) in self.events:
                yield event, max(known)

    @staticmethod
    def _counts(event: AssetEvent, now: datetime, upto: int | None) -> bool:
        moment = instant_of(event)
        return moment < now or (moment == now and (upto is None or place_in_ledger(event) <= upto))


class Lines(dict[str | None, Line]):
    """The queues of one consumer in the order of time, each read when it is needed."""

    def __init__(self, state: State, consumer: Consumer) -> None:
        super().__init__()
        self._state = state
        self._consumer = consumer

    def __missing__(self, key: str | None) -> Line:
        self[key] = Line(self._state, self._consumer, key)
        return self[key]


class TimedQueue:
    """One queue of a timed consumer at one instant.

    Parameters:
        now: events count that were recorded up to this instant.
        recorded: whether everything is recorded that counts at this instant. A wait until now is over only then (9.6).
        upto: the place in the ledger up to which the events of this instant count; `None` for all of them.
        line: the queue in the order of time, if somebody goes through several of its instants.
    """

    def __init__(
        self,
        state: State,
        consumer: Consumer,
        target_key: str | None,
        now: datetime,
        *,
        recorded: bool,
        upto: int | None = None,
        line: Line | None = None,
    ) -> None:
        self.consumer = consumer
        self.target_key = target_key
        self.now = now
        self._state = state
        self._recorded = recorded
        self._upto = upto
        self._line = line

    def again(self) -> TimedQueue:
        """Return the queue at the same instant, after something was taken out of it or noted of it."""
        return TimedQueue(
            self._state,
            self.consumer,
            self.target_key,
            self.now,
            recorded=self._recorded,
            upto=self._upto,
            line=self._line,
        )

    @cached_property
    def line(self) -> Line:
        """The queue in the order of time, in which the events count that count now."""
        if self._line is None:
            self._line = Line(self._state, self.consumer, self.target_key)
        self._line.count(self.now, self._upto)
        return self._line

    @property
    def events(self) -> Collection[AssetEvent]:
        """The queued events that count now, oldest first."""
        return self.line.events.values()

    @property
    def oldest(self) -> AssetEvent | None:
        """The oldest event that counts now."""
        return next(iter(self.events), None)

    @property
    def reach(self) -> Reach:
        return self.line.reach

    @cached_property
    def hours(self) -> ConsumerClock | None:
        """The opening hours, while paused as a resume now would make them (9.13); `None` if there are none."""
        if self.consumer.decides:
            return self._state.clocks.consumer(self.consumer.id)
        return opening_hours.resumed(self._state, self.consumer, self.now)

    @property
    def is_open(self) -> bool:
        """True if the schedule is open for this queue (9.7)."""
        hours = self.hours
        return hours is None or (hours.is_open and not self._clock.has_closed(hours.opened))

    @property
    def is_busy(self) -> bool:
        """True if a run goes on, so that the next decision waits for its end (4.7)."""
        return self.consumer.coalesces and self._state.decisions.is_busy(self.consumer.id, self.target_key)

    @property
    def is_cooling(self) -> bool:
        """True if the cooldown after the last decision is not over yet (9.11)."""
        cools = self.cool_at
        return cools is not None and not self._is_over(cools)

    @cached_property
    def lacks_updates(self) -> bool:
        """True if the queued events cannot satisfy the condition, and nothing runs without it."""
        schedule, key = self.consumer.schedule, self.target_key
        pending = self._state.queues.pending(self.consumer.id, key)
        few = len(pending) < self.consumer.fewest
        return not self._clock.overdue and (few or not evaluate(schedule, key, pending, self._state.names.tokens_of))

    def cannot_be_decided_by(self, recorded_from: datetime) -> bool:
        """Return True if new events lead to no decision, whatever else is queued. Most events meet such a queue.

        The queue may be long, so its events are not looked at. Where they would tell, the answer is False.

        Parameters:
            recorded_from: the earliest instant of the new events.
        """
        if self.lacks_updates or not self.consumer.decides or self.is_busy or self.is_cooling:
            return True
        intake = self.consumer.options.intake
        # When `max_wait` for older events was over, the clock has looked: if they are left, it is closed or not held.
        late = intake.max_wait is not None and recorded_from + intake.max_wait < self.now
        if late or self._clock.overdue:
            return False
        few = intake.min_events is not None and self.size < intake.min_events
        return few or not self.is_open or (intake.debounce is not None and recorded_from + intake.debounce >= self.now)

    @property
    def size(self) -> int:
        """The number of queued events, those of later instants too."""
        return self._state.queues.size(self.consumer.id, self.target_key)

    @property
    def _clock(self) -> QueueClock:
        return self._state.clocks.queue(self.consumer.id, self.target_key)

    @property
    def oldest_due(self) -> datetime | None:
        """When the deadline of the oldest event is due; `None` if it was told already, or there is none (9.8)."""
        deadline = self.consumer.options.deadline
        if deadline is None or deadline.after is None or self.consumer.deadline_of_opening:
            return None
        oldest = self.oldest
        return None if oldest is None or self._clock.told == oldest.sequence else instant_of(oldest) + deadline.after

    @property
    def missing(self) -> tuple[str, ...]:
        """The assets and aliases of the condition of which no event is queued, each by its URI or its name."""
        condition = self.consumer.schedule.condition
        leaves = () if condition is None else condition.leaves
        queued = frozenset[Token]().union(*(self._state.names.tokens_of(event.uri) for event in self.events))
        return tuple(dict.fromkeys(leaf.token.value for leaf in leaves if leaf.token not in queued))

    def waits(self) -> Waits:
        """Return what the queue waits for. It is decided on if that is nothing but `at_latest`."""
        consumer, overdue = self.consumer, self._clock.overdue
        found: dict[Reason, datetime | None] = {}
        if not consumer.decides:
            found["resume"] = None
        if not self.events:
            found["update"] = None
            return found
        if not overdue and not self.is_open:
            found["opening"] = self._next_opening()
        if not overdue and not self.reach.holds:
            found["condition"] = None
        if self.is_busy:
            found["run"] = None
        if self.is_cooling:
            found["cooldown"] = self.cool_at
        if not overdue and "condition" not in found:
            found |= self._waits_for_more()
        return found

    @property
    def is_ready(self) -> bool:
        """True if it is decided on now."""
        return not self.waits().keys() - {"at_latest"}

    @property
    def cool_at(self) -> datetime | None:
        """When the cooldown after the last decision is over; `None` without one (9.11)."""
        cooldown = self.consumer.cooldown
        decided = None if cooldown is None else self._clock.decided
        return None if cooldown is None or decided is None else decided + cooldown

    @property
    def quiet_at(self) -> datetime | None:
        """When the newest event is as old as `debounce` asks (9.9)."""
        debounce, newest = self.consumer.options.intake.debounce, self.line.newest
        return None if debounce is None or newest is None else instant_of(newest) + debounce

    @property
    def decides_at_latest(self) -> datetime | None:
        """When `max_wait` is over; `None` while the condition does not hold (9.9)."""
        max_wait = self.consumer.options.intake.max_wait
        first = self.reach.completing or self.oldest
        return None if max_wait is None or first is None or not self.reach.holds else instant_of(first) + max_wait

    def wait_ends(self) -> Iterator[datetime]:
        """Yield the ends of waits, past ones too: a wait that is over leads to nothing by itself."""
        if self.events and self.consumer.decides:
            found = (self.cool_at, self.quiet_at, self.decides_at_latest)
            yield from (moment for moment in found if moment is not None)

    def act_instants(self) -> Iterator[datetime]:
        """Yield the instants from which on the clock has something to do: a deadline to look at, events that expire."""
        if self.oldest_due is not None and self.consumer.decides:
            yield self.consumer.no_earlier(self.oldest_due)
        if (expiry := self.line.next_expiry) is not None:
            yield expiry

    def drop(self, event: AssetEvent, status: ReceiptStatus) -> None:
        """Take an event out of the queue: it was skipped or has expired. If it was the last, no deadline is missed."""
        place = place_in_ledger(event)
        self.line.drop(event)
        self._state.write(event, Receipt(place, event.uri, self.consumer.id, status, self.target_key, at=self.now))
        if not self.events:
            set_overdue(self._state, self.consumer, self.target_key, overdue=False)

    def _waits_for_more(self) -> Waits:
        intake = self.consumer.options.intake
        latest = self.decides_at_latest
        if not intake.waits_for_more or (latest is not None and self._is_over(latest)):
            return {}
        found: dict[Reason, datetime | None] = {}
        quiet = self.quiet_at
        if quiet is not None and not self._is_over(quiet):
            found["quiet"] = quiet
        if intake.min_events is not None and len(self.events) < intake.min_events:
            found["more"] = None
        if found and latest is not None:
            found["at_latest"] = latest
        return found

    def _next_opening(self) -> datetime | None:
        hours, opening = self.hours, self.consumer.schedule.opening
        return None if hours is None or opening is None else next_time(opening.timetable, hours.gone_through)

    def _is_over(self, moment: datetime) -> bool:
        return moment <= self.now if self._recorded else moment < self.now


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


def end_if_empty(state: State, consumer: Consumer, key: str | None) -> None:
    """End a missed deadline of a queue in which nothing is queued."""
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
