"""The fold over recordings: record, queue, decide (contract chapters 2 to 5).

The live evaluator, the simulator and the tests run these functions; they differ in the book alone. A recording and
what follows from it is one transaction of the book's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from assetflow.core.book import Book
from assetflow.core.conditions import Token
from assetflow.core.consumers import Consumer, Decision, Receipt, ReceiptStatus, decision_id
from assetflow.core.evaluation import evaluate
from assetflow.core.events import AssetEvent, Recording
from assetflow.core.partitions import check_key
from assetflow.errors import InvalidEvent, MappingError

# The consumers that a recording touched, with the target keys that have to be looked at; none for all keys.
Touched = dict[int, tuple[Consumer, set[str | None] | None]]


@dataclass
class Recorded:
    """What became of a recording: its new events, whom they touched, and what a person should be told."""

    events: list[AssetEvent] = field(default_factory=list[AssetEvent])
    touched: Touched = field(default_factory=dict[int, "tuple[Consumer, set[str | None] | None]"])
    new_assets: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])


def record(book: Book, recording: Recording, now: datetime) -> Recorded:
    """Write the new events of a recording and offer each to every consumer that wants it (3.1)."""
    result = Recorded()
    for event in book.new_events(recording.id, recording.events):
        new = _declare(book, event, result)
        recorded = book.append(event, recording.id, now)
        _offer_to_all(book, recorded, result.touched)
        touch_judging(book, event.uri, new, result.touched)
        result.events.append(recorded)
    return result


def pass_over(book: Book, touched: Touched, now: datetime) -> list[Decision]:
    """One pass over the touched consumers: at most one decision for each (for each key, if partitioned) (4.3)."""
    decisions: list[Decision] = []
    for number in sorted(touched):
        consumer, keys = touched[number]
        decisions += evaluate_consumer(book, consumer, keys, now)
    return decisions


def record_and_pass(book: Book, recording: Recording, now: datetime) -> tuple[Recorded, list[Decision]]:
    """A recording and the pass that follows it: the step of the live evaluator."""
    result = record(book, recording, now)
    return result, pass_over(book, result.touched, now)


def evaluate_consumer(
    book: Book, consumer: Consumer, keys: Iterable[str | None] | None, now: datetime
) -> list[Decision]:
    """The decisions that a consumer's queue leads to now, for some target keys or for all of them."""
    if not consumer.decides:
        return []
    if keys is None:
        keys = book.target_keys(consumer.id)
    made: list[Decision] = []
    for key in sorted(keys, key=_order):
        decision = _decide(book, consumer, key, now)
        if decision is not None:
            made.append(decision)
    return made


def _order(key: str | None) -> str:
    return key or ""


def _decide(book: Book, consumer: Consumer, key: str | None, now: datetime) -> Decision | None:
    pending = book.pending(consumer.id, key)
    # Most passes end here, before anything of the schedule has to be looked at.
    if len(pending) < consumer.fewest or (consumer.coalesces and book.is_busy(consumer.id, key)):
        return None
    if not evaluate(consumer.schedule, key, pending, book.tokens_of):
        return None
    events = tuple(book.queued(consumer.id, key))
    number = decision_id(consumer.deployment_id, key, (event.id for event in events))
    decision = Decision(number, consumer.id, consumer.deployment_id, key, events, now)
    book.decide(decision)
    return decision


def touch_judging(book: Book, uri: str, new: Collection[Token], touched: Touched) -> None:
    """Touch the consumers for which these new tokens of a URI may change how its queued events are judged.

    Names and links count as they are when a condition is evaluated, also if they came after the event (4.1).
    """
    if not new:
        return
    for consumer in book.wanting(book.tokens_of(uri)):
        if not consumer.schedule.judging_tokens.isdisjoint(new):
            touched[consumer.id] = (consumer, None)


def _declare(book: Book, event: AssetEvent, result: Recorded) -> list[Token]:
    """Let the asset's name and aliases be known; the tokens that are new for it. The first URI keeps a name (1.2)."""
    asset = event.asset
    new: list[Token] = []
    names = book.names_of(asset.uri)
    if not names:
        result.new_assets.append(asset.uri)
        if event.aliases:
            result.warnings.append(f"{asset.uri} is new; it came through alias {', '.join(event.aliases)}")
    if asset.name not in names:
        owner = book.owner_of(asset.name)
        if owner is None:
            book.declare(asset.name, asset.uri)
            new.append(Token("name", asset.name))
        else:
            result.warnings.append(
                f"the name {asset.name!r} belongs to {owner}; the update of {asset.uri} is made without it"
            )
    linked = book.aliases_of(asset.uri) if event.aliases else ()
    for alias in event.aliases:
        if alias not in linked:
            book.link(alias, asset.uri)
            new.append(Token("alias", alias))
    return new


def _offer_to_all(book: Book, event: AssetEvent, touched: Touched) -> None:
    tokens = book.tokens_of(event.uri)
    consumers = book.wanting(tokens)
    if not consumers:
        book.write(event, Receipt(place_in_ledger(event), event.uri, None, "no_consumer"))
    for consumer in consumers:
        keys = _offer(book, event, consumer, tokens)
        if keys:
            _, seen = touched.setdefault(consumer.id, (consumer, set()))
            if seen is not None:
                seen.update(keys)


def _offer(book: Book, event: AssetEvent, consumer: Consumer, tokens: frozenset[Token]) -> Sequence[str | None]:
    """Queue an event for a consumer, or write why not; the first reason that applies counts (3.5)."""
    if not consumer.wants_key(event.partition_key):
        return refuse(book, event, consumer, "not_for_consumer")
    if consumer.takes_nothing:
        return refuse(book, event, consumer, "dropped")
    try:
        keys = target_keys_of(consumer, event, tokens)
    except MappingError as error:
        return refuse(book, event, consumer, "not_mapped", error=str(error))
    for key in keys:
        book.write(event, Receipt(place_in_ledger(event), event.uri, consumer.id, "queued", key))
    return keys


def target_keys_of(consumer: Consumer, event: AssetEvent, tokens: frozenset[Token]) -> Sequence[str | None]:
    """The pending partitions that an event belongs to; `(None,)` for a plain consumer (5.1).

    Raises:
        MappingError: the mapper cannot map the key, gives too many, or one that can be no key (5.4).
    """
    if event.partition_key is None:
        return (None,)
    partitioning = consumer.schedule.partitioning
    if partitioning is None:
        return (None,)
    keys = tuple(dict.fromkeys(partitioning.mapper_for(tokens).to_downstream(event.partition_key)))
    for key in keys:
        _check_target_key(key, event.partition_key)
    return keys


def _check_target_key(key: str, of: str) -> None:
    """A target key is the key of a run, and of the updates that the run makes: the same rules hold for it (2.5)."""
    try:
        check_key(key)
    except InvalidEvent as error:
        raise MappingError(
            f"The partition key {of!r} gives a target key that can be none: {error.message}",
            fix="Change the formats of the mapper, or the key",
            rule="5.4",
        ) from error


def refuse(
    book: Book, event: AssetEvent, consumer: Consumer, status: ReceiptStatus, *, error: str = ""
) -> Sequence[str | None]:
    """Write why an event is not queued for a consumer."""
    book.write(event, Receipt(place_in_ledger(event), event.uri, consumer.id, status, error=error))
    return ()


def place_in_ledger(event: AssetEvent) -> int:
    """The sequence of a recorded event; only recorded ones have receipts."""
    assert event.sequence is not None, "only recorded events have receipts"
    return event.sequence
