"""The state that the fold reads and changes, in the ledger and in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID, uuid5

from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.kept import Mirror
from assetflow.core.rules.evaluation import evaluate, wanted_keys
from assetflow.core.rules.state.changes import Changes, Clocks, Consumed, QueueKey, Source
from assetflow.core.rules.state.names import Consumers, Events, Names, place_in_ledger
from assetflow.core.rules.state.queues import LONG, Queues
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import DECISIONS, Consumer, Decision, Receipt
from assetflow.core.values.events import AssetEvent, Recording


class Receipts:
    """The receipts. New ones are written to the changes, earlier ones are read from the source."""

    def __init__(self, source: Source, changes: Changes) -> None:
        self._source = source
        self._changes = changes

    def of(self, consumer: int, event: int) -> Sequence[Receipt]:
        """Return the receipts of an event for a consumer."""
        found: dict[str | None, Receipt] = {}
        if event < self._changes.first:
            found = {receipt.target_key: receipt for receipt in self._source.receipts(consumer, event)}
        for sequence, number, key, decision in self._changes.consumed:
            if (sequence, number) == (event, consumer):
                found[key] = found[key]._replace(status="consumed", decision=decision)
        for (number, key), receipt in self._changes.receipts.get(event, {}).items():
            if number == consumer:
                if receipt is None:
                    found.pop(key, None)
                else:
                    found[key] = receipt
        return list(found.values())

    def write(self, receipt: Receipt) -> None:
        """Write a receipt; it replaces the one of the same event, consumer and target key."""
        of_event = self._changes.receipts.get(receipt.event)
        if of_event is None:
            of_event = self._changes.receipts[receipt.event] = {}
        of_event[receipt.consumer, receipt.target_key] = receipt

    def consume(self, event: AssetEvent, decision: Decision) -> None:
        """Write that a decision consumed a queued event."""
        sequence, consumer, key = place_in_ledger(event), decision.consumer, decision.target_key
        if sequence < self._changes.first and sequence not in self._changes.receipts:
            self._changes.consumed.append(Consumed(sequence, consumer, key, decision.id))
        else:
            self.write(Receipt(sequence, event.asset.uri, consumer, "consumed", key, decision.id))

    def drop(self, event: int, consumer: int, target_key: str | None) -> None:
        """Delete a receipt."""
        self._changes.receipts.setdefault(event, {})[consumer, target_key] = None


class Decisions:
    """The decisions. Runs end outside of the fold, so each unit of work reads which of them are open."""

    def __init__(self, source: Source, changes: Changes) -> None:
        self._source = source
        self._changes = changes
        self._busy = Mirror[int, set[str | None]](self._read_busy, set())

    def load(self, consumers: Iterable[int]) -> None:
        """Read for which keys of these consumers a run is going, unless it is known."""
        self._busy.load(consumers)

    def is_busy(self, consumer: int, target_key: str | None) -> bool:
        """Return True if a run that was started for this consumer and key is still going. Contract 4.7."""
        return target_key in self._busy[consumer]

    def add(self, decision: Decision) -> None:
        """Write a decision; its run counts as going from now on."""
        self._changes.decisions.append(decision)
        if decision.consumer in self._busy:
            self._busy[decision.consumer].add(decision.target_key)

    def retry_run(self, consumer: int, target_key: str | None) -> None:
        """Let a run of a consumer for one key count as going again. Contract 4.7."""
        self._busy[consumer].add(target_key)

    def end_runs(self, consumer: int) -> None:
        """Let all runs of a consumer count as ended. Contract 4.7."""
        self._busy[consumer] = set()

    def end_run(self, consumer: int, target_key: str | None) -> None:
        """Let the run of a consumer for one key count as ended. Contract 4.7."""
        self._busy[consumer].discard(target_key)

    def renew(self) -> None:
        """Forget which runs are going."""
        self._busy.clear()

    def _read_busy(self, consumers: Collection[int]) -> Iterable[tuple[int, set[str | None]]]:
        found: dict[int, set[str | None]] = {number: set() for number in consumers}
        made = ((decision.consumer, decision.target_key) for decision in self._changes.decisions)
        for number, key in (*self._source.busy(consumers), *made):
            if number in found:
                found[number].add(key)
        return found.items()


@lru_cache(maxsize=10_000)
def _text(number: UUID) -> str:
    # An event is consumed by several decisions, and writing an id takes longer than finding it.
    return str(number)


def decision_id(deployment_id: UUID, target_key: str | None, event_ids: Iterable[UUID]) -> UUID:
    """Return the id of a decision, which is also the idempotency key of its run.

    It depends on the consumed events alone, so a rebuilt ledger computes the same id.
    """
    return uuid5(DECISIONS, "|".join((_text(deployment_id), target_key or "", *sorted(map(_text, event_ids)))))


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

    def __init__(self, source: Source | None = None, limits: Limits | None = None) -> None:
        in_memory = source is None
        self._source = source = source or Source()
        limits = limits or Limits()
        self.changes = changes = Changes()
        self.names = Names(source, changes, limits.names)
        self.events = Events(source, changes, limits.events)
        self.consumers = Consumers(source, changes, limits.consumers)
        self.queues = Queues(source, changes, self.events, limits.queues)
        self.receipts = Receipts(source, changes)
        self.decisions = Decisions(source, changes)
        self.clocks = Clocks(source, changes)
        self.freshness = FreshnessState(
            source, self._uri_of, self.names.tokens_of, self._newest_place, in_memory=in_memory
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
        """Write a receipt, which replaces the one of the same event, consumer and key, and update the queue."""
        consumer = receipt.consumer
        if consumer is not None:
            if receipt.status == "queued":
                self.queues.put(event, consumer, receipt.target_key)
            else:
                self.queues.take(event, consumer, receipt.target_key)
        self.receipts.write(receipt)

    def unqueue(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        """Delete a queued receipt, because the event gets other target keys. Contract 5.6."""
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


# The queues that the recordings add events to, each with its consumer and how many new events have each URI and key.
Touched = dict[QueueKey, tuple[Consumer, dict[str, Counter[str | None]]]]


def prefetch(state: State, recordings: Sequence[Recording]) -> None:
    """Read what the fold will need for these recordings.

    If this misses something, the fold reads it later, entry by entry, with the same result.
    """
    state.events.load(recordings)
    events = [event for recording in recordings for event in recording.events if not _is_known(state, event)]
    if not events:
        return
    state.names.load(dict.fromkeys(event.asset.uri for event in events))
    state.names.load_owners(dict.fromkeys(event.asset.name for event in events))
    tokens = _tokens(state, events)
    state.consumers.load(token for found in tokens.values() for token in found)
    touched = _touched(state, events, tokens)
    state.queues.load(touched)
    state.decisions.load(consumer.id for consumer in _coalescing(state, tokens))
    state.queues.load_events(_may_be_consumed(state, touched, tokens))
    state.clocks.load(list(_timed(state, events, tokens)))


def _is_known(state: State, event: AssetEvent) -> bool:
    """Return True if nothing has to be read for an event, as for most events of an evaluator at work."""
    tokens = state.names.known_tokens(event)
    consumers = None if tokens is None else state.consumers.known_wanting(tokens)
    if tokens is None or consumers is None:
        return False
    for consumer in consumers:
        if consumer.coalesces or consumer.is_timed:
            return False
        for key in _target_keys(consumer, event, tokens):
            if not state.queues.is_read((consumer.id, key)):
                return False
    return True


def _tokens(state: State, events: Iterable[AssetEvent]) -> dict[str, frozenset[Token]]:
    """Return the tokens that each URI will have when all events are recorded."""
    found: dict[str, frozenset[Token]] = {}
    for event in events:
        uri = event.asset.uri
        before = found.get(uri)
        if before is None:
            before = found[uri] = state.names.tokens_of(uri)
        new = [Token("alias", alias) for alias in event.aliases]
        new += [Token("name", name) for name in event.asset.names if state.names.owner_of(name) in (None, uri)]
        if not before.issuperset(new):
            found[uri] = before.union(new)
    return found


def _coalescing(state: State, tokens: Mapping[str, frozenset[Token]]) -> Iterable[Consumer]:
    return (each for found in tokens.values() for each in state.consumers.wanting(found) if each.coalesces)


def _touched(state: State, events: Iterable[AssetEvent], tokens: Mapping[str, frozenset[Token]]) -> Touched:
    """Return the queues that the events will be added to and that have to be read."""
    touched: Touched = {}
    for event in events:
        found = tokens[event.asset.uri]
        for consumer in state.consumers.wanting(found):
            for key in _target_keys(consumer, event, found):
                if not state.queues.is_read((consumer.id, key)):
                    _, added = touched.setdefault((consumer.id, key), (consumer, {}))
                    added.setdefault(event.asset.uri, Counter())[event.partition_key] += 1
    return touched


def _timed(state: State, events: Iterable[AssetEvent], tokens: Mapping[str, frozenset[Token]]) -> Iterable[QueueKey]:
    """Yield the queues of timed consumers that the events will be added to: each needs its clock."""
    for event in events:
        found = tokens[event.asset.uri]
        for consumer in state.consumers.wanting(found):
            if consumer.is_timed:
                yield from ((consumer.id, key) for key in _target_keys(consumer, event, found))


def _target_keys(consumer: Consumer, event: AssetEvent, tokens: frozenset[Token]) -> Sequence[str | None]:
    """Return the keys under which an event will be queued."""
    return () if consumer.takes_nothing else wanted_keys(consumer, event, tokens)


def _may_be_consumed(state: State, touched: Touched, tokens: Mapping[str, frozenset[Token]]) -> Iterable[QueueKey]:
    """Yield the queues whose condition will hold when everything is recorded.

    More updates never make a condition false, so no other queue can be consumed before.
    """
    stored = {key: state.queues.pending(*key) for key in touched}
    state.names.load(dict.fromkeys(uri for pending in stored.values() for uri in pending))

    def tokens_of(uri: str) -> frozenset[Token]:
        return tokens[uri] if uri in tokens else state.names.tokens_of(uri)

    for (number, key), (consumer, added) in touched.items():
        waits = consumer.coalesces and state.decisions.is_busy(number, key)
        if consumer.is_timed:
            # A long queue is read when a decision needs it: most events meet one that waits for something else.
            if len(stored[number, key].keys() | added) >= consumer.fewest and state.queues.size(number, key) <= LONG:
                yield number, key
        elif consumer.decides and stored[number, key] and not waits:
            pending = {uri: Counter(keys) for uri, keys in stored[number, key].items()}
            for uri, keys in added.items():
                pending.setdefault(uri, Counter()).update(keys)
            if evaluate(consumer.schedule, key, pending, tokens_of):
                yield number, key
