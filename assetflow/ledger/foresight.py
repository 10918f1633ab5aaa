"""What the fold over some recordings will ask a book for, read beforehand in a few statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assetflow.core.conditions import Token
from assetflow.core.consumers import Consumer
from assetflow.core.evaluation import evaluate
from assetflow.core.events import AssetEvent, Recording
from assetflow.core.fold import target_keys_of
from assetflow.errors import MappingError
from assetflow.ledger.journal import Journal
from assetflow.ledger.names import Names
from assetflow.ledger.queues import QueueKey, Queues
from assetflow.ledger.roster import Roster
from assetflow.ledger.verdicts import Verdicts

# Queues that recordings touch: the consumer, and what they will add, URI to keys.
Touched = dict[QueueKey, tuple[Consumer, dict[str, set[str | None]]]]


def foresee(
    names: Names, journal: Journal, roster: Roster, queues: Queues, verdicts: Verdicts, recordings: Sequence[Recording]
) -> None:
    """Read all that the fold will need. What is foreseen wrongly is read later, one by one, and changes no result."""
    events = [event for recording in recordings for event in recording.events]
    journal.load(recordings)
    names.load_assets(dict.fromkeys(event.uri for event in events))
    declared = dict.fromkeys(name for event in events for name in (event.uri, event.asset.name))
    names.load_owners(declared)
    tokens = _tokens(names, events)
    roster.load((*(token for found in tokens.values() for token in found), *(Token("name", x) for x in declared)))
    touched = _touched(roster, events, tokens)
    queues.load(touched)
    verdicts.load(consumer.id for consumer, _ in touched.values() if consumer.options.coalesce)
    queues.load_events(_may_be_consumed(names, queues, verdicts, touched, tokens))


def _tokens(names: Names, events: Iterable[AssetEvent]) -> dict[str, frozenset[Token]]:
    """The tokens of each URI when all events are recorded."""
    found: dict[str, set[Token]] = {}
    for event in events:
        uri = event.uri
        if uri not in found:
            found[uri] = {*_stored_tokens(names, uri), Token("name", uri)}
        if names.owner_of(event.asset.name) in (None, uri):
            found[uri].add(Token("name", event.asset.name))
        found[uri].update(Token("alias", alias) for alias in event.aliases)
    return {uri: frozenset(tokens) for uri, tokens in found.items()}


def _stored_tokens(names: Names, uri: str) -> frozenset[Token]:
    return frozenset(
        (
            Token("uri", uri),
            *(Token("name", name) for name in names.names_of(uri)),
            *(Token("alias", alias) for alias in names.aliases_of(uri)),
        )
    )


def _touched(roster: Roster, events: Iterable[AssetEvent], tokens: dict[str, frozenset[Token]]) -> Touched:
    touched: Touched = {}
    wanting = {uri: roster.wanting(found) for uri, found in tokens.items()}
    for event in events:
        for consumer in wanting[event.uri]:
            if consumer.takes_nothing or not consumer.schedule.wants_key(event.partition_key):
                continue
            for key in _target_keys(consumer, event, tokens[event.uri]):
                _, added = touched.setdefault((consumer.id, key), (consumer, {}))
                added.setdefault(event.uri, set()).add(event.partition_key)
    return touched


def _target_keys(consumer: Consumer, event: AssetEvent, tokens: frozenset[Token]) -> Sequence[str | None]:
    try:
        return target_keys_of(consumer, event, tokens)
    except MappingError:
        return ()


def _may_be_consumed(
    names: Names, queues: Queues, verdicts: Verdicts, touched: Touched, tokens: dict[str, frozenset[Token]]
) -> Iterable[QueueKey]:
    """The queues whose condition holds once everything is recorded; no other one can be consumed before."""
    stored = {key: queues.pending(*key) for key in touched}
    names.load_assets(uri for pending in stored.values() for uri in pending)

    def tokens_of(uri: str) -> frozenset[Token]:
        if uri not in tokens:
            tokens[uri] = _stored_tokens(names, uri)
        return tokens[uri]

    for (number, key), (consumer, added) in touched.items():
        waits = consumer.options.coalesce and verdicts.is_busy(number, key)
        if consumer.decides and stored[number, key] and not waits:
            pending = {uri: set(keys) for uri, keys in stored[number, key].items()}
            for uri, keys in added.items():
                pending.setdefault(uri, set()).update(keys)
            if evaluate(consumer.schedule, key, pending, tokens_of):
                yield number, key
