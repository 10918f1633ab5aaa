# ruff: noqa: ARG002
"""The changes of a unit of work, which a ledger writes when the unit ends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from assetflow.core.freshness.state.source import FreshnessSource
from assetflow.core.kept import Mirror
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision, MissedDeadline, Receipt
from assetflow.core.values.events import AssetEvent, Content


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


QueueKey = tuple[int, str | None]
"""A queue: the consumer's id and the target key, which is `None` for a plain consumer."""

Place = tuple[int, str | None, str, str | None]
"""Where a queued event is counted: consumer, target key, URI, and the event's own key."""

Description = tuple[str, Mapping[str, object]]
"""The group and the extra of an asset."""


class Consumed(NamedTuple):
    """A receipt of an earlier unit of work that changes from queued to consumed."""

    event: int
    consumer: int
    target_key: str | None
    decision: UUID


class Changes:
    """The changes since a unit of work began.

    Attributes:
        first: the sequence of the unit's first event; events with a lower one were recorded before.
        assets: the URIs of new assets.
        descriptions: the URIs whose group or extra changed.
        names: each new name with the URI that it belongs to.
        links: the new links, as alias and URI.
        events, recordings: the new events in the order of their sequences, and the id of each one's recording.
        consumers: id to the consumer before and after; `None` before for a new one, `None` after for a removed one.
        receipts: sequence of the event to (consumer, target key) to the receipt; `None` for a deleted receipt.
        consumed: the receipts from before the unit that become consumed. Most changes of receipts are of this kind.
        counts: the number of events at a place before the unit, and now.
        decisions: the new decisions, in order.
        missed: the deadlines that were missed, in the order in which the clock looked at them.
        most_decisions: with so many, further ones on a queue that `max_events` splits are left to the clock, in a later
            unit of work (9.10); `None` for no limit.
        consumer_clocks, queue_clocks: what the clock remembers from now on of timed consumers and their queues.
    """

    def __init__(self) -> None:
        self.first = 1
        self.most_decisions: int | None = None
        self.assets: dict[str, None] = {}
        self.descriptions: dict[str, None] = {}
        self.names: dict[str, str] = {}
        self.links: dict[tuple[str, str], None] = {}
        self.events: list[AssetEvent] = []
        self.recordings: list[UUID] = []
        self.consumers: dict[int, tuple[Consumer | None, Consumer | None]] = {}
        self.receipts: dict[int, dict[tuple[int | None, str | None], Receipt | None]] = {}
        self.consumed: list[Consumed] = []
        self.counts: dict[Place, tuple[int, int]] = {}
        self.decisions: list[Decision] = []
        self.missed: list[MissedDeadline] = []
        self.consumer_clocks: dict[int, ConsumerClock | None] = {}
        self.queue_clocks: dict[QueueKey, QueueClock] = {}

    @property
    def next_event(self) -> int:
        """The sequence of the event that is recorded next."""
        return self.first + len(self.events)

    @property
    def is_full(self) -> bool:
        """True if no decision has to be added that can be made in a later unit of work."""
        return self.most_decisions is not None and len(self.decisions) >= self.most_decisions

    def all_receipts(self) -> Iterator[Receipt]:
        """Yield every receipt that was written and not deleted."""
        for receipts in self.receipts.values():
            yield from (receipt for receipt in receipts.values() if receipt is not None)

    @property
    def beyond_events(self) -> bool:
        """True if something changed that does not follow from the new events and decisions.

        Another process keeps its memory by reading the new events and decisions. After any other change it has to
        forget everything.
        """
        if self.consumers or any(event < self.first for event in self.receipts):
            return True
        if not self.names.keys() <= {event.asset.name for event in self.events}:
            return True
        touched = {*self.assets, *self.descriptions, *self.names.values(), *(uri for _, uri in self.links)}
        return not touched <= {event.uri for event in self.events}

    def begin(self, first: int) -> None:
        """Begin the next unit of work and clear the changes of the one before.

        Parameters:
            first: the sequence of the unit's first event.
        """
        self.__init__()
        self.first = first


"""The content of an event: URI, key and extra."""


class Source(FreshnessSource):
    """The state that was committed before the unit of work began.

    Each method answers for many keys at once, and leaves out what does not exist. This base class is an empty source:
    for a state that has it, everything that exists is in the changes. The methods of `FreshnessSource` are part of it.
    """

    def owners(self, names: Collection[str]) -> Iterable[tuple[str, str]]:
        """Return those of these names that belong to a URI, each with the URI."""
        return ()

    def names(self, uris: Collection[str]) -> Iterable[tuple[str, str]]:
        """Return pairs of a URI and one of its names."""
        return ()

    def aliases(self, uris: Collection[str]) -> Iterable[tuple[str, str]]:
        """Return pairs of a URI and an alias that it is linked to."""
        return ()

    def descriptions(self, uris: Collection[str]) -> Iterable[tuple[str, str, Mapping[str, object]]]:
        """Return those of these URIs that are assets, each with its group and extra."""
        return ()

    def recorded(self, ids: Collection[UUID]) -> Iterable[tuple[UUID, Content]]:
        """Return those of these event ids that are recorded, each with the event's content."""
        return ()

    def delivered(self, recordings: Collection[UUID]) -> Iterable[tuple[UUID, str, str | None, datetime]]:
        """Return the recorded events of these recordings in order: recording, URI, key, and when each occurred."""
        return ()

    def events(self, sequences: Collection[int]) -> Iterable[AssetEvent]:
        """Return these events, in any order."""
        return ()

    def newest_event(self, uri: str, key: str | None) -> AssetEvent | None:
        """Return the newest event of an asset and a key, or `None` if there is none."""

    def places(self, ids: Collection[UUID]) -> Iterable[tuple[UUID, int]]:
        """Return those of these event ids that are recorded, each with the event's sequence."""
        return ()

    def place_at(self, uri: str, instant: datetime) -> int:
        """Return the sequence of the newest event of an asset up to an instant, 0 if there was none."""
        return 0

    def first_after(self, uri: str, place: int) -> int | None:
        """Return the sequence of the first event of an asset after a place in the ledger; `None` if none came."""

    def is_declared(self, uri: str, besides: UUID) -> bool:
        """Return True if a deployment other than `besides` declares that it makes or reads this URI."""
        return False

    def is_made(self, tokens: Collection[Token]) -> bool:
        """Return True if a deployed flow makes the asset with these tokens."""
        return False

    def ends_of_recordings(self, sequences: Collection[int]) -> Iterable[tuple[UUID, int]]:
        """Return each recording of these events with the last of them."""
        return ()

    def wanting(self, tokens: Collection[Token]) -> Iterable[tuple[Token, int]]:
        """Return pairs of a token and the id of a consumer whose schedule has it."""
        return ()

    def consumers(self, numbers: Collection[int]) -> Iterable[tuple[int, Consumer]]:
        """Return the consumers with these ids, without those that were removed."""
        return ()

    def live(self) -> Iterable[int]:
        """Return the ids of all consumers that were not removed."""
        return ()

    def pending_keys(self, consumer: int) -> Iterable[str | None]:
        """Return the target keys under which events are queued for a consumer."""
        return ()

    def counts(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, str, str | None, int]]:
        """Return the counts of these queues: queue, URI, key, number of events. Other queues may be in the answer."""
        return ()

    def queued(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, int]]:
        """Return pairs of a queue and the sequence of an event in it. Other queues may be in the answer."""
        return ()

    def receipts(self, consumer: int, event: int) -> Iterable[Receipt]:
        """Return the receipts of an event for a consumer."""
        return ()

    def busy(self, consumers: Collection[int]) -> Iterable[QueueKey]:
        """Return pairs of a consumer and a target key for which a run has not ended."""
        return ()

    def consumer_clocks(self, consumers: Collection[int]) -> Iterable[tuple[int, ConsumerClock]]:
        """Return the opening hours of those of these consumers that have some."""
        return ()

    def queue_clocks(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, QueueClock]]:
        """Return what the clock remembers of these queues. The answer may have other queues too."""
        return ()

    def last_decisions(self, consumer: int) -> Iterable[tuple[QueueKey, datetime, datetime]]:
        """Return the last decision on each queue of a consumer: queue, instant, and when its run was to start."""
        return ()
