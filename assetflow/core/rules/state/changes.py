# ruff: noqa: ARG002
"""The changes of a unit of work, which a ledger writes when the unit ends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from assetflow.core.freshness.state.source import FreshnessSource
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision, MissedDeadline, Receipt
from assetflow.core.values.events import AssetEvent, Content

if TYPE_CHECKING:
    from assetflow.core.rules.state.clocks import ConsumerClock, QueueClock


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
        return None

    def places(self, ids: Collection[UUID]) -> Iterable[tuple[UUID, int]]:
        """Return those of these event ids that are recorded, each with the event's sequence."""
        return ()

    def place_at(self, uri: str, instant: datetime) -> int:
        """Return the sequence of the newest event of an asset up to an instant, 0 if there was none."""
        return 0

    def first_after(self, uri: str, place: int) -> int | None:
        """Return the sequence of the first event of an asset after a place in the ledger; `None` if none came."""
        return None

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

    def consumers(self, numbers: Collection[int]) -> Iterable[Consumer]:
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
