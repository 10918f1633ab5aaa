"""What the fold over some recordings will ask a book for, read beforehand in a few statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assetflow.core.conditions import Token
from assetflow.core.consumers import Consumer
from assetflow.core.evaluation import evaluate
from assetflow.core.events import AssetEvent
from assetflow.core.fold import target_keys_of
from assetflow.errors import MappingError
from assetflow.ledger.names import Names
from assetflow.ledger.queues import QueueKey, Queues
from assetflow.ledger.roster import Roster
from assetflow.ledger.verdicts import Verdicts

# Queues that recordings touch: the consumer, and what they add, URI to keys.
Touched = dict[QueueKey, tuple[Consumer, dict[str, set[str | None]]]]


def is_known(names: Names, roster: Roster, queues: Queues, event: AssetEvent) -> bool:
    """Whether nothing has to be read for an event: an evaluator at work knows all that most events meet."""
    tokens = names.known_tokens(event)
    consumers = None if tokens is None else roster.known_wanting(tokens)
    if tokens is None or consumers is None:
        return False
    for consumer in consumers:
        if consumer.coalesces:
            return False
        for key in _target_keys(consumer, event, tokens):
            if not queues.is_known((consumer.id, key)):
                return False
    return True


def foresee(names: Names, roster: Roster, queues: Queues, verdicts: Verdicts, events: Sequence[AssetEvent]) -> None:
    """Read all that the fold will need for these events, of which some may be recorded in this transaction already.

    What is foreseen wrongly is read later, one by one, and changes no result.
    """
    names.load_assets(dict.fromkeys(event.asset.uri for event in events))
    names.load_owners(dict.fromkeys(event.asset.name for event in events))
    tokens = _tokens(names, events)
    roster.load(token for found in tokens.values() for token in found)
    touched = _touched(roster, queues, events, tokens)
    queues.load(touched)
    verdicts.load(consumer.id for consumer in _coalescing(roster, tokens))
    queues.load_events(_may_be_consumed(names, queues, verdicts, touched, tokens))


def _tokens(names: Names, events: Iterable[AssetEvent]) -> dict[str, frozenset[Token]]:
    """The tokens of each URI when all events are recorded."""
    found: dict[str, frozenset[Token]] = {}
    for event in events:
        uri, name = event.asset.uri, event.asset.name
        before = found.get(uri)
        if before is None:
            before = found[uri] = names.tokens_of(uri)
        new = [Token("alias", alias) for alias in event.aliases]
        if names.owner_of(name) in (None, uri):
            new.append(Token("name", name))
        if not before.issuperset(new):
            found[uri] = before.union(new)
    return found


def _coalescing(roster: Roster, tokens: Mapping[str, frozenset[Token]]) -> Iterable[Consumer]:
    return (consumer for found in tokens.values() for consumer in roster.wanting(found) if consumer.coalesces)


def _touched(
    roster: Roster, queues: Queues, events: Iterable[AssetEvent], tokens: Mapping[str, frozenset[Token]]
) -> Touched:
    """The queues that have to be read."""
    touched: Touched = {}
    for event in events:
        found = tokens[event.asset.uri]
        for consumer in roster.wanting(found):
            for key in _target_keys(consumer, event, found):
                if not queues.is_known((consumer.id, key)):
                    _, added = touched.setdefault((consumer.id, key), (consumer, {}))
                    added.setdefault(event.asset.uri, set()).add(event.partition_key)
    return touched


def _target_keys(consumer: Consumer, event: AssetEvent, tokens: frozenset[Token]) -> Sequence[str | None]:
    """The keys under which an event will be queued."""
    if not consumer.wants_key(event.partition_key) or consumer.takes_nothing:
        return ()
    try:
        return target_keys_of(consumer, event, tokens)
    except MappingError:
        return ()


def _may_be_consumed(
    names: Names, queues: Queues, verdicts: Verdicts, touched: Touched, tokens: Mapping[str, frozenset[Token]]
) -> Iterable[QueueKey]:
    """The queues whose condition holds once everything is recorded; no other one can be consumed before."""
    stored = {key: queues.pending(*key) for key in touched}
    names.load_assets(uri for pending in stored.values() for uri in pending)

    def tokens_of(uri: str) -> frozenset[Token]:
        return tokens[uri] if uri in tokens else names.tokens_of(uri)

    for (number, key), (consumer, added) in touched.items():
        waits = consumer.coalesces and verdicts.is_busy(number, key)
        if consumer.decides and stored[number, key] and not waits:
            pending = {uri: set(keys) for uri, keys in stored[number, key].items()}
            for uri, keys in added.items():
                pending.setdefault(uri, set()).update(keys)
            if evaluate(consumer.schedule, key, pending, tokens_of):
                yield number, key
