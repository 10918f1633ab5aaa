"""Prefetch: read in a few requests what the fold over some recordings will need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from assetflow.core.rules.evaluation import evaluate, target_keys_of
from assetflow.core.rules.state.changes import QueueKey
from assetflow.core.rules.state.queues import LONG
from assetflow.core.rules.state.state import State
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.errors import MappingError

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
    if not consumer.wants_key(event.partition_key) or consumer.takes_nothing:
        return ()
    try:
        return target_keys_of(consumer, event, tokens)
    except MappingError:
        return ()


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
