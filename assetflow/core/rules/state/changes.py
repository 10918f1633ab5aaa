"""The changes of a unit of work, which a ledger writes when the unit ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from assetflow.core.values.consumers import Consumer, Decision, MissedDeadline, Receipt
from assetflow.core.values.events import AssetEvent

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
        self.first = first
        for written in (self.assets, self.descriptions, self.names, self.links, self.consumers, self.receipts):
            written.clear()
        for listed in (self.events, self.recordings, self.consumed, self.decisions, self.missed):
            listed.clear()
        for kept in (self.counts, self.consumer_clocks, self.queue_clocks):
            kept.clear()
