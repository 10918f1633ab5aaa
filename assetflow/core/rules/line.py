"""One timed queue in the order of time: what has come up to an instant, what that satisfies, and what expires next.

The clock goes through the instants of a queue one after the other, so a line is read once and moves on. However long
the queue is, each further instant costs what comes or goes at it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile

from assetflow.core.rules.evaluation import Reach, in_order, instant_of
from assetflow.core.rules.state import State
from assetflow.core.rules.state.names import place_in_ledger
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent

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
