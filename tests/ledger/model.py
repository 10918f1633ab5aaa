"""A second, plain implementation of the state, with which tests compare the real one.

It keeps everything in dictionaries, forgets nothing, and reads nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from assetflow.core.rules.evaluation import Pending
from assetflow.core.rules.state import State
from assetflow.core.rules.state.names import all_tokens, only_new
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision, Receipt
from assetflow.core.values.events import AssetEvent, Content, Recording, is_recorded_as

QueueKey = tuple[int, str | None]


class Model:
    """A state with the methods of `State`. Each of its parts is the model itself."""

    def __init__(self) -> None:
        self.recorded: list[AssetEvent] = []
        self.registered: dict[int, Consumer] = {}
        self.written: dict[tuple[int, int | None, str | None], Receipt] = {}
        self.made: list[Decision] = []
        self.running: dict[QueueKey, set[UUID]] = defaultdict(set)
        # Without flows that keep outputs up to date, it has nothing to say.
        self.freshness = State().freshness
        self._owners: dict[str, str] = {}
        self._names: dict[str, dict[str, None]] = defaultdict(dict)
        self._aliases: dict[str, dict[str, None]] = defaultdict(dict)
        self._contents: dict[UUID, Content] = {}
        self._recordings: dict[UUID, dict[tuple[str, str | None], datetime]] = defaultdict(dict)
        self._index: dict[Token, set[int]] = defaultdict(set)
        self._queues: dict[QueueKey, dict[int, AssetEvent]] = {}
        self._pending: dict[QueueKey, dict[str, Counter[str | None]]] = {}
        self._keys: dict[int, dict[str | None, None]] = defaultdict(dict)
        self._receipt_keys: dict[tuple[int | None, int], dict[str | None, None]] = defaultdict(dict)

    def __getattr__(self, name: str) -> Any:
        if name in ("names", "events", "consumers", "queues", "receipts", "decisions"):
            return self
        raise AttributeError(name)

    def owner_of(self, name: str) -> str | None:
        return self._owners.get(name)

    def load_owners(self, names: Iterable[str]) -> None:
        """Read nothing: all owners are known."""

    def names_of(self, uri: str) -> Collection[str]:
        return self._names.get(uri, ())

    def declare(self, name: str, uri: str) -> None:
        if name in self._owners:
            self._names[self._owners[name]].pop(name, None)
        self._owners[name] = uri
        self._names[uri][name] = None

    def is_declared(self, uri: str, *, besides: UUID) -> bool:
        return any(each.deployment_id != besides for each in self.wanting(frozenset((Token("uri", uri),))))

    def aliases_of(self, uri: str) -> Collection[str]:
        return self._aliases.get(uri, ())

    def tokens_of(self, uri: str) -> frozenset[Token]:
        return all_tokens(uri, self.names_of(uri), self.aliases_of(uri))

    def link(self, alias: str, uri: str) -> None:
        self._aliases[uri][alias] = None

    def new(self, recording: Recording) -> Sequence[AssetEvent]:
        return self.only_new(recording.id, recording.events)

    def only_new(self, recording: UUID, events: Sequence[AssetEvent]) -> Sequence[AssetEvent]:
        return only_new(events, self._contents.__contains__, self._recordings.get(recording, {}))

    def is_recorded_otherwise(self, event: AssetEvent) -> bool:
        return event.id in self._contents and not is_recorded_as(event.content, self._contents[event.id])

    def append(self, event: AssetEvent, recording: UUID, now: datetime) -> AssetEvent:
        recorded = event.in_ledger(len(self.recorded) + 1, now)
        self.recorded.append(recorded)
        self._contents[event.id] = event.content
        self._recordings[recording].setdefault((event.uri, event.partition_key), event.occurred)
        return recorded

    def wanting(self, tokens: frozenset[Token]) -> Sequence[Consumer]:
        found: set[int] = set()
        for token in tokens:
            found |= self._index.get(token, set())
        return [self.registered[number] for number in sorted(found)]

    def save(self, consumer: Consumer) -> None:
        self._unindex(consumer.id)
        self.registered[consumer.id] = consumer
        for token in consumer.schedule.tokens:
            self._index[token].add(consumer.id)

    def remove(self, consumer: Consumer) -> None:
        self._unindex(consumer.id)
        del self.registered[consumer.id]

    def pending(self, consumer: int, target_key: str | None) -> Pending:
        return self._pending.get((consumer, target_key), {})

    def target_keys(self, consumer: int) -> Collection[str | None]:
        return list(self._keys.get(consumer, ()))

    def queued(self, consumer: int, target_key: str | None) -> Sequence[AssetEvent]:
        queue = self._queues.get((consumer, target_key), {})
        return [queue[sequence] for sequence in sorted(queue)]

    def of(self, consumer: int, event: int) -> Sequence[Receipt]:
        return [self.written[event, consumer, key] for key in self._receipt_keys[consumer, event]]

    def all_queued(self, consumer: int) -> Iterable[tuple[str | None, AssetEvent]]:
        for key in sorted(self.target_keys(consumer), key=lambda key: key or ""):
            for event in self.queued(consumer, key):
                yield key, event

    def write(self, event: AssetEvent, receipt: Receipt) -> None:
        self.written[receipt.event, receipt.consumer, receipt.target_key] = receipt
        self._receipt_keys[receipt.consumer, receipt.event][receipt.target_key] = None
        if receipt.consumer is None:
            return
        if receipt.status == "queued":
            self._enqueue((receipt.consumer, receipt.target_key), event)
        else:
            self._dequeue((receipt.consumer, receipt.target_key), event)

    def unqueue(self, event: AssetEvent, consumer: int, target_key: str | None) -> None:
        assert event.sequence is not None
        del self.written[event.sequence, consumer, target_key]
        del self._receipt_keys[consumer, event.sequence][target_key]
        self._dequeue((consumer, target_key), event)

    def is_busy(self, consumer: int, target_key: str | None) -> bool:
        return bool(self.running.get((consumer, target_key)))

    def decide(self, decision: Decision) -> None:
        self.made.append(decision)
        self.running[decision.consumer, decision.target_key].add(decision.id)
        for event in decision.events:
            assert event.sequence is not None
            before = self.written[event.sequence, decision.consumer, decision.target_key]
            self.write(event, before._replace(status="consumed", decision=decision.id))

    def end_runs(self, consumer: int) -> None:
        for key in [key for key in self.running if key[0] == consumer]:
            del self.running[key]

    def _unindex(self, number: int) -> None:
        if number in self.registered:
            for token in self.registered[number].schedule.tokens:
                self._index[token].discard(number)

    def _enqueue(self, key: QueueKey, event: AssetEvent) -> None:
        assert event.sequence is not None
        queue = self._queues.setdefault(key, {})
        if event.sequence in queue:
            return
        queue[event.sequence] = event
        self._keys[key[0]][key[1]] = None
        self._pending.setdefault(key, {}).setdefault(event.uri, Counter())[event.partition_key] += 1

    def _dequeue(self, key: QueueKey, event: AssetEvent) -> None:
        queue = self._queues.get(key, {})
        if event.sequence is None or queue.pop(event.sequence, None) is None:
            return
        keys = self._pending[key][event.uri]
        keys[event.partition_key] -= 1
        if not keys[event.partition_key]:
            del keys[event.partition_key]
        if not keys:
            del self._pending[key][event.uri]
        if not queue:
            del self._queues[key], self._pending[key]
            self._keys[key[0]].pop(key[1], None)
