"""What changes consumers: deploying, a changed schedule, pause, removal, and an operator's work on the queue."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime

from assetflow.core.assets import Asset
from assetflow.core.book import Book, all_queued
from assetflow.core.conditions import Token
from assetflow.core.consumers import Consumer, Decision, Receipt
from assetflow.core.events import AssetEvent
from assetflow.core.fold import Touched, pass_over, place_in_ledger, refuse, target_keys_of, touch_judging
from assetflow.core.schedules import ConsumerOptions, Schedule
from assetflow.errors import MappingError, NameTaken


def deploy(book: Book, consumer: Consumer) -> None:
    """Let a new consumer take part, with an empty queue (3.6), and its assets' names be known.

    Raises:
        NameTaken: an asset's name belongs to another URI (1.2); nothing is changed.
    """
    check_names(book, consumer.schedule)
    _declare_names(book, consumer.schedule)
    book.save(consumer)


def change(book: Book, consumer: Consumer, options: ConsumerOptions) -> Consumer:
    """Give a consumer another schedule: queued events that still match stay, the others are superseded (4.4, 5.6).

    Raises:
        NameTaken: an asset's name belongs to another URI (1.2); nothing is changed.
    """
    check_names(book, options.schedule)
    _declare_names(book, options.schedule)
    changed = replace(consumer, options=options)
    by_event: dict[AssetEvent, list[str | None]] = {}
    for key, event in all_queued(book, consumer.id):
        by_event.setdefault(event, []).append(key)
    book.save(changed)
    for event in sorted(by_event, key=place_in_ledger):
        _requeue(book, changed, event, by_event[event])
    return changed


def remove(book: Book, consumer: Consumer) -> None:
    """Take a consumer away; what was queued for it is superseded (3.6)."""
    for key, event in list(all_queued(book, consumer.id)):
        _supersede(book, consumer, event, key)
    book.forget(consumer)


def switch(book: Book, consumer: Consumer, *, paused: bool | None = None, held: bool | None = None) -> Consumer:
    """Pause or resume a consumer (its automation's switch), hold or release it (its deployment's) (3.4)."""
    changed = replace(
        consumer,
        paused=consumer.paused if paused is None else paused,
        held=consumer.held if held is None else held,
    )
    book.save(changed)
    return changed


def touched_by(book: Book, consumer: Consumer) -> Touched:
    """Whom a changed schedule, a resume or the end of a run concerns (4.3, 4.7).

    That is the consumer itself, and those that refer by name to an asset that its schedule names: the name may be
    known only now.
    """
    touched: Touched = {}
    for asset in consumer.schedule.named_assets:
        if book.owner_of(asset.name) == asset.uri:
            touch_judging(book, asset.uri, [Token("name", asset.name)], touched)
    return touched | {consumer.id: (consumer, None)}


def pass_over_consumer(book: Book, consumer: Consumer, now: datetime) -> list[Decision]:
    """The pass that follows a changed schedule, a resume or the end of a run (4.3, 4.7)."""
    return pass_over(book, touched_by(book, consumer), now)


def remove_queued(
    book: Book,
    consumer: Consumer,
    matches: Callable[[AssetEvent], bool],
    target_keys: Collection[str | None],
    *,
    by: str = "",
    why: str = "",
) -> int:
    """Take queued events away on an operator's word; the number of receipts that say so (3.7).

    Parameters:
        target_keys: the pending partition that was named, or `{None}` for the plain queue.
    """
    removed = 0
    for key in target_keys:
        for event in list(book.queued(consumer.id, key)):
            if matches(event):
                receipt = Receipt(place_in_ledger(event), event.uri, consumer.id, "removed", key, by=by, why=why)
                book.write(event, receipt)
                removed += 1
    return removed


def check_names(book: Book, schedule: Schedule) -> None:
    """Refuse a schedule in which a name belongs to a second URI (1.2).

    Raises:
        NameTaken: it belongs to another asset of the schedule, or to one that was known before.
    """
    named: dict[str, str] = {}
    for asset in schedule.named_assets:
        owner = book.owner_of(asset.name) or named.setdefault(asset.name, asset.uri)
        if owner != asset.uri:
            raise NameTaken(
                f"the name {asset.name!r} belongs to {owner!r}, it cannot name {asset.uri!r} too",
                rule="1.2",
                fix="Give one of the two assets another name",
            )


def declare_name(book: Book, asset: Asset) -> Touched:
    """Let the name of an asset be known, unless it belongs to another; whom that concerns (1.2)."""
    touched: Touched = {}
    if book.owner_of(asset.name) is None:
        book.declare(asset.name, asset.uri)
        touch_judging(book, asset.uri, [Token("name", asset.name)], touched)
    return touched


def _declare_names(book: Book, schedule: Schedule) -> None:
    for asset in schedule.named_assets:
        if book.owner_of(asset.name) is None:
            book.declare(asset.name, asset.uri)


def _requeue(book: Book, consumer: Consumer, event: AssetEvent, keys: list[str | None]) -> None:
    """Carry one queued event over to the consumer's changed schedule."""
    schedule = consumer.schedule
    tokens = book.tokens_of(event.uri)
    if not (tokens & schedule.tokens) or not consumer.wants_key(event.partition_key):
        for key in keys:
            _supersede(book, consumer, event, key)
        return
    if not schedule.is_partitioned:
        return
    done = {
        receipt.target_key
        for receipt in book.receipts_of(consumer.id, place_in_ledger(event))
        if receipt.status in ("consumed", "removed")
    }
    for key in keys:
        book.unqueue(event, consumer.id, key)
    try:
        new_keys = target_keys_of(consumer, event, tokens)
    except MappingError as error:
        refuse(book, event, consumer, "not_mapped", error=str(error))
        return
    for key in new_keys:
        if key not in done:
            book.write(event, Receipt(place_in_ledger(event), event.uri, consumer.id, "queued", key))


def _supersede(book: Book, consumer: Consumer, event: AssetEvent, key: str | None) -> None:
    book.write(event, Receipt(place_in_ledger(event), event.uri, consumer.id, "superseded", key))
