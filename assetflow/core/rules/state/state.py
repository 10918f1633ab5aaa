"""The state that the fold reads and changes, in the ledger and in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from assetflow.core.condition_tree import Token
from assetflow.core.freshness.state import Book
from assetflow.core.rules.state.changes import Changes, QueueKey
from assetflow.core.rules.state.clocks import Clocks
from assetflow.core.rules.state.consumers import Consumers
from assetflow.core.rules.state.decisions import Decisions
from assetflow.core.rules.state.events import Events, place_in_ledger
from assetflow.core.rules.state.names import Names
from assetflow.core.rules.state.queues import Queues
from assetflow.core.rules.state.receipts import Receipts
from assetflow.core.rules.state.source import StateSource
from assetflow.core.values.consumers import Decision, Receipt
from assetflow.core.values.events import AssetEvent

_MB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """How many bytes of each kind a state remembers from one unit of work to the next. It may take twice as many."""

    names: int = 24 * _MB
    consumers: int = 32 * _MB
    queues: int = 48 * _MB
    events: int = 16 * _MB


class State:
    """Names, events, consumers, queues, receipts and decisions, for one thread at a time.

    A state reads from its source what it does not remember, and notes its changes. Without a source it holds
    everything in its changes, as in the simulator and in tests.

    A unit of work begins with `begin`. When its changes are written, `renew` ends it. If they could not be written, the
    state is wrong, and its owner has to throw it away.

    Parameters:
        source: answers with what was committed before the unit of work; `None` for a state in memory.
        limits: how much to remember.
    """

    def __init__(self, source: StateSource | None = None, limits: Limits | None = None) -> None:
        in_memory = source is None
        self._source = source = source or StateSource()
        limits = limits or Limits()
        self.changes = changes = Changes()
        self.names = Names(source, changes, limits.names)
        self.events = Events(source, changes, limits.events)
        self.consumers = Consumers(source, changes, limits.consumers)
        self.queues = Queues(source, changes, self.events, limits.queues)
        self.receipts = Receipts(source, changes)
        self.decisions = Decisions(source, changes)
        self.clocks = Clocks(source, changes)
        self.freshness = Book(
            source.freshness(), self._uri_of, self.names.tokens_of, self._newest_place, in_memory=in_memory
        )

    def declare(self, name: str, uri: str) -> None:
        """Save that a name belongs to a URI, from now on."""
        self.names.declare(name, uri)
        self.freshness.renamed(name)

    def is_made(self, uri: str) -> bool:
        """Return True if a deployed flow makes an asset, so that it is not a source (contract chapter 8)."""
        made = self.freshness.graph.maker(uri) is not None
        return made or self._source.is_made(self.names.tokens_of(uri))

    def is_declared(self, uri: str, *, besides: UUID) -> bool:
        """Return True if a deployment names an asset by its URI.

        Parameters:
            besides: this deployment does not count.
        """
        makers = (node.consumer for node in self.freshness.graph.makers(uri))
        named = (*self.consumers.wanting(frozenset((Token("uri", uri),))), *makers)
        return any(each.deployment_id != besides for each in named) or self._source.is_declared(uri, besides)

    def append(self, event: AssetEvent, recording: UUID, now: datetime) -> AssetEvent:
        """Append an event to the ledger, and return it with its sequence."""
        self.names.describe(event.asset)
        return self.events.append(event, recording, now)

    def write(self, event: AssetEvent, receipt: Receipt) -> None:
        """Write a receipt and keep the queue in step; it replaces the one of the same event, consumer and key."""
        consumer = receipt.consumer
        if consumer is not None:
            if receipt.status == "queued":
                self.queues.put(event, consumer, receipt.target_key)
            else:
                self.queues.take(event, consumer, receipt.target_key)
        self.receipts.write(receipt)

    def unqueue(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        """Delete a queued receipt, because the event is mapped anew. Contract 5.6."""
        self.queues.take(event, consumer, target_key)
        self.receipts.drop(place_in_ledger(event), consumer, target_key)

    def decide(self, decision: Decision) -> None:
        """Write a decision, and change the receipts of its events to `consumed`."""
        self.decisions.add(decision)
        consumer = self.consumers.find(decision.consumer)
        if consumer is not None and consumer.cooldown is not None and decision.kind == "asset":
            self.clocks.note_decision(decision)
        if decision.events:
            self.queues.consume(decision.events, decision.consumer, decision.target_key)
            for event in decision.events:
                self.receipts.consume(event, decision)

    def all_queued(self, consumer: int) -> Iterable[tuple[str | None, AssetEvent]]:
        """Yield every queued event of a consumer with its target key: by key, then oldest first."""
        keys = sorted(self.queues.target_keys(consumer), key=lambda key: key or "")
        self.queues.load_events((consumer, key) for key in keys)
        for key in keys:
            for event in self.queues.queued(consumer, key):
                yield key, event

    def _uri_of(self, token: Token) -> str | None:
        return token.value if token.kind == "uri" else self.names.owner_of(token.value)

    def _newest_place(self) -> int:
        return self.changes.next_event - 1

    def begin(self, first: int, now: datetime | None = None) -> None:
        """Begin a unit of work.

        Parameters:
            first: the sequence of the unit's first event.
            now: the time at which it is made, UTC; `None` if its instants are not late.
        """
        self.changes.begin(first)
        self.clocks.begin(now)
        self.freshness.begin()

    def renew(self) -> None:
        """End a unit of work whose changes are written: remember its results, and forget what exceeds the limits."""
        self.names.renew()
        self.events.renew()
        self.consumers.renew()
        self.queues.renew()
        self.decisions.renew()
        self.clocks.renew()
        self.freshness.renew()

    def learn(
        self,
        events: Sequence[AssetEvent],
        queued: Iterable[tuple[QueueKey, int]],
        consumed: Iterable[tuple[QueueKey, int]],
    ) -> None:
        """Apply what another process has recorded and decided since the last unit of work.

        Parameters:
            events: the new events.
            queued: the queues that new events are in, each with the sequence of the event.
            consumed: the queues from which decisions took events, each with the sequence of the event.
        """
        self.names.learn(events)
        self.events.learn(events)
        self.queues.learn(queued, consumed)
        for name in dict.fromkeys(event.asset.name for event in events):
            self.freshness.renamed(name)
