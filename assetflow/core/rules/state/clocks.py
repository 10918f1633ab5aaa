"""What the clock remembers of timed consumers and their queues. Contract 9.6 to 9.8."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from assetflow.core.kept import Mirror
from assetflow.core.rules.state.changes import Changes, QueueKey, Source
from assetflow.core.values.consumers import Decision


@dataclass(frozen=True, slots=True)
class ConsumerClock:
    """The state of the opening hours of one consumer.

    Attributes:
        gone_through: all openings and closings up to this instant, included, have been gone through.
        opened: the latest opening; `None` before the first.
        is_open: `until` has not closed it. A decision closes it for its queue only: see `QueueClock.closed`.
        deadlines: the openings that neither a decision nor a deadline has settled: when each deadline is due, and when
            the schedule opened.
        due: the next instant at which an opening, `until` or a deadline has to be looked at; `None` if there is none.
    """

    gone_through: datetime
    opened: datetime | None = None
    is_open: bool = False
    deadlines: tuple[tuple[datetime, datetime], ...] = ()
    due: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueueClock:
    """The clock's state of one queue.

    Attributes:
        gone_through: everything up to this instant is decided; what comes later counts after it. `None` if the clock
            had nothing to do yet.
        closed: the opening that a decision or a deadline has closed for this queue.
        overdue: a missed deadline said "run", and no decision has come since.
        told: the sequence of the event whose deadline was reported last; 0 before the first.
        deferred: events are queued whose passes wait until earlier instants are decided.
        due: the next instant at which time may change something; `None` if there is none.
        decided: the instant of the last decision; `None` before the first, and without a cooldown (9.11).
        started: when the run of that decision was to start.
    """

    gone_through: datetime | None = None
    closed: datetime | None = None
    overdue: bool = False
    told: int = 0
    deferred: bool = False
    due: datetime | None = None
    decided: datetime | None = None
    started: datetime | None = None

    def has_closed(self, opening: datetime | None) -> bool:
        """Return True if a decision or a deadline has closed an opening, or a later one, for this queue."""
        return self.closed is not None and opening is not None and opening <= self.closed


class Clocks:
    """The clocks of timed consumers and their queues."""

    def __init__(self, source: Source, changes: Changes) -> None:
        self._source = source
        self._changes = changes
        self._now: datetime | None = None
        # The instant of which part (1) is done for all consumers; `None` where nobody goes through instants for all.
        self.begun: datetime | None = None
        self._consumers = Mirror[int, ConsumerClock | None](source.consumer_clocks, None)
        self._queues = Mirror[QueueKey, QueueClock](self._read_queues, QueueClock())

    def begin(self, now: datetime | None) -> None:
        """Begin a unit of work that is made at this time; `None` if its instants are not late."""
        self._now = now

    def now_or(self, instant: datetime) -> datetime:
        """Return the time at which what happens at an instant is done: later than the instant after a downtime."""
        return instant if self._now is None else max(self._now, instant)

    def load(self, queues: Collection[QueueKey]) -> None:
        """Read the clocks of these queues and their consumers, unless they are known."""
        self._consumers.load(number for number, _ in queues)
        self._queues.load(queues)

    def consumer(self, consumer: int) -> ConsumerClock | None:
        """Return the opening hours of a consumer; `None` if it has none."""
        return self._consumers[consumer]

    def set_consumer(self, consumer: int, clock: ConsumerClock | None) -> None:
        """Write the opening hours of a consumer; `None` if it has none any more."""
        if clock != self.consumer(consumer):
            self._consumers[consumer] = self._changes.consumer_clocks[consumer] = clock

    def queue(self, consumer: int, target_key: str | None) -> QueueClock:
        """Return what is remembered of a queue."""
        return self._queues[consumer, target_key]

    def set_queue(self, consumer: int, target_key: str | None, clock: QueueClock) -> None:
        """Write what is remembered of a queue."""
        if clock != self.queue(consumer, target_key):
            self._queues[consumer, target_key] = self._changes.queue_clocks[consumer, target_key] = clock

    def idle(self, consumer: int, target_keys: Iterable[str | None]) -> None:
        """Let time act on these queues of a consumer no more: its new options depend on no instants."""
        for key in target_keys:
            self.set_queue(consumer, key, replace(self.queue(consumer, key), deferred=False, due=None))

    def note_decision(self, decision: Decision) -> None:
        """Remember when a queue with a cooldown was decided on, and when the run starts. Contract 9.11."""
        starts = decision.scheduled or self.now_or(decision.made)
        self._set_decided((decision.consumer, decision.target_key), decision.made, starts)

    def recall_decisions(self, consumer: int) -> None:
        """Remember when the queues of a consumer that gets a cooldown were last decided on. Contract 9.11."""
        found = list(self._source.last_decisions(consumer))
        self.load([queue for queue, _, _ in found])
        for queue, made, starts in found:
            self._set_decided(queue, made, starts)
        for decision in self._changes.decisions:
            if decision.consumer == consumer and decision.kind == "asset":
                self.note_decision(decision)

    def _read_queues(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, QueueClock]]:
        return ((key, clock) for key, clock in self._source.queue_clocks(queues) if key in queues)

    def _set_decided(self, queue: QueueKey, made: datetime, starts: datetime) -> None:
        clock = self.queue(*queue)
        # A ledger that is restored may find its decisions in another order.
        if clock.decided is None or clock.decided <= made:
            self.set_queue(*queue, replace(clock, decided=made, started=starts))

    def renew(self) -> None:
        """Forget everything: other processes may change it."""
        self._consumers.clear()
        self._queues.clear()
