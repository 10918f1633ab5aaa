"""Change consumers: deploy, change the schedule, pause, resume, remove, and remove queued events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from assetflow.core.freshness import deploying
from assetflow.core.grouping import grouped
from assetflow.core.rules import opening_hours
from assetflow.core.rules.evaluation import target_keys_of
from assetflow.core.rules.fold import Passing, Touched, pass_over, refuse, touch_judging
from assetflow.core.rules.state import State
from assetflow.core.rules.state.names import place_in_ledger
from assetflow.core.rules.waits import end_if_empty, follow
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision, Receipt
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import some
from assetflow.errors import InvalidCall, MappingError, NameTaken


def deploy(state: State, consumer: Consumer) -> None:
    """Add a new consumer with an empty queue, and save the names of the assets in its schedule. Contract 3.6.

    Raises:
        NameTaken: an asset's name belongs to another URI (1.2). Nothing is changed.
        InvalidSchedule: the flow cannot work beside those that are deployed (8.1, 8.10). Nothing is changed.
    """
    check_names(state, consumer)
    deploying.check_flow(state.freshness, consumer)
    declare_names(state, consumer.schedule.named_assets, consumer.deployment_id)
    state.consumers.save(consumer)


def change(state: State, consumer: Consumer, options: ConsumerOptions) -> Consumer:
    """Give a consumer a new schedule and options, and return the changed consumer.

    Queued events that still match stay queued, the others are superseded. Contract 4.4, 5.6.

    Raises:
        NameTaken: an asset's name belongs to another URI (1.2). Nothing is changed.
        InvalidSchedule: the flow cannot work beside those that are deployed (8.1, 8.10). Nothing is changed.
    """
    changed = replace(consumer, options=options)
    check_names(state, changed)
    deploying.check_flow(state.freshness, changed)
    declare_names(state, options.schedule.named_assets, consumer.deployment_id)
    by_event = grouped((event, key) for key, event in state.all_queued(consumer.id))
    state.consumers.save(changed)
    if changed.cooldown is not None and consumer.cooldown is None:
        state.clocks.recall_decisions(consumer.id)
    if consumer.is_timed:
        follow(state, changed)
        if not changed.is_timed:
            state.clocks.idle(consumer.id, state.queues.target_keys(consumer.id))
    for event in sorted(by_event, key=place_in_ledger):
        _requeue(state, changed, event, by_event[event])
    if consumer.is_timed:
        for key in {key for keys in by_event.values() for key in keys}:
            end_if_empty(state, changed, key)
    return changed


def remove(state: State, consumer: Consumer) -> None:
    """Remove a consumer; its queued events are superseded. Contract 3.6."""
    for key, event in list(state.all_queued(consumer.id)):
        _supersede(state, consumer, event, key)
    state.consumers.remove(consumer)


def switch(
    state: State, before: Consumer, *, paused: bool | None = None, held: bool | None = None, now: datetime
) -> Consumer:
    """Pause, resume, hold or release a consumer, with its opening hours and versions; return the changed consumer.

    Parameters:
        paused: the consumer's automation is switched off; `None` changes nothing. Contract 3.4.
        held: its deployment is paused; `None` changes nothing.
    """
    changed = replace(
        before, paused=before.paused if paused is None else paused, held=before.held if held is None else held
    )
    state.consumers.save(changed)
    opening_hours.follow(state, before, changed, now)
    deploying.follow(state.freshness, before, changed, now)
    return changed


def touched_by(state: State, consumer: Consumer) -> Touched:
    """Return the consumers to check after a consumer was deployed, changed or resumed.

    These are the consumer itself, and all consumers that refer by name to an asset that its schedule declares: the
    declaration may have made the name known. Contract 4.3.
    """
    touched: Touched = {}
    for asset in consumer.schedule.named_assets:
        if state.names.owner_of(asset.name) == asset.uri:
            touch_judging(state, asset.uri, [Token("name", asset.name)], touched)
    return touched | {consumer.id: (consumer, None)}


def pass_over_consumer(state: State, consumer: Consumer, now: datetime, passing: Passing = pass_over) -> list[Decision]:
    """Make the pass that follows a changed schedule. Contract 4.3, 4.4."""
    return passing(state, touched_by(state, consumer), now)


def touched_by_switch(state: State, before: Consumer, after: Consumer) -> Touched:
    """Return the consumers to check after a switch: none, unless it resumed or released the consumer. Contract 4.3."""
    is_freed = (before.paused and not after.paused) or (before.held and not after.held)
    return touched_by(state, after) if is_freed else {}


def touch_ended(state: State, number: int, target_keys: Collection[str | None] | None, touched: Touched) -> None:
    """Touch a consumer whose runs have ended, if it coalesces: the end of such a run is a pass. Contract 4.7.

    Parameters:
        number: the id of the consumer.
        target_keys: the keys of the runs; `None` for all runs of the consumer.
    """
    consumer = state.consumers.find(number)
    if consumer is None or not consumer.coalesces:
        return
    if target_keys is None:
        touched[number] = (consumer, None)
        return
    _, seen = touched.setdefault(number, (consumer, set()))
    if seen is not None:
        seen.update(target_keys)


def remove_queued(
    state: State,
    consumer: Consumer,
    matches: Callable[[AssetEvent], bool],
    target_keys: Collection[str | None],
    *,
    by: str = "",
    why: str = "",
) -> int:
    """Remove queued events for an operator, and return how many receipts became `removed`. Contract 3.7.

    Parameters:
        matches: returns True for the events to remove.
        target_keys: the pending partitions to remove from, or `{`None`}` for a plain consumer.
        by, why: who removes them, and the reason given.
    """
    removed = 0
    for key in target_keys:
        for event in list(state.queues.queued(consumer.id, key)):
            if matches(event):
                receipt = Receipt(place_in_ledger(event), event.uri, consumer.id, "removed", key, by=by, why=why)
                state.write(event, receipt)
                removed += 1
        if consumer.is_timed:
            end_if_empty(state, consumer, key)
    return removed


def check_names(state: State, consumer: Consumer) -> None:
    """Refuse a consumer in whose schedule a name belongs to a second URI (1.2).

    Raises:
        NameTaken: it belongs to another asset of the schedule, or to one that was known before.
    """
    named: dict[str, str] = {}
    for asset in consumer.schedule.named_assets:
        owner = _owner(state, asset.name, consumer.deployment_id) or named.setdefault(asset.name, asset.uri)
        if owner != asset.uri:
            raise NameTaken(
                f"the name {asset.name!r} belongs to {owner!r}, it cannot name {asset.uri!r} too",
                rule="1.2",
                fix="Give one of the two assets another name",
            )


def declare_names(state: State, assets: Collection[Asset], deployment_id: UUID | None = None) -> Touched:
    """Save the names of declared assets that belong to no other asset; return the consumers to check. Contract 1.2.

    Parameters:
        deployment_id: the deployment that declares them; `None` if none does.
    """
    touched: Touched = {}
    state.names.load_owners(name for asset in assets for name in asset.names)
    uris = {asset.uri for asset in assets}
    for asset in assets:
        for name in asset.names:
            owner = _owner(state, name, deployment_id)
            if owner is None and (name == asset.uri or name not in uris):
                state.declare(name, asset.uri)
                touch_judging(state, asset.uri, [Token("name", name)], touched)
    return touched


def _owner(state: State, name: str, deployment_id: UUID | None) -> str | None:
    """Return the URI that keeps a name when a deployment declares it.

    A URI that was only updated, and has the name because it reads so, gives it up (1.2).
    """
    owner = state.names.owner_of(name)
    if owner == name and deployment_id is not None and not state.is_declared(name, besides=deployment_id):
        return None
    return owner


def _requeue(state: State, consumer: Consumer, event: AssetEvent, keys: list[str | None]) -> None:
    """Queue an event again under the consumer's new schedule, or supersede it.

    Parameters:
        keys: the target keys under which it was queued.
    """
    schedule = consumer.schedule
    tokens = state.names.tokens_of(event.uri)
    if not (tokens & schedule.tokens) or not consumer.wants_key(event.partition_key):
        for key in keys:
            _supersede(state, consumer, event, key)
        return
    if not schedule.is_partitioned:
        return
    done = {
        receipt.target_key
        for receipt in state.receipts.of(consumer.id, place_in_ledger(event))
        if receipt.status in ("consumed", "removed", "expired", "skipped")
    }
    for key in keys:
        state.unqueue(event, consumer.id, key)
    try:
        new_keys = target_keys_of(consumer, event, tokens)
    except MappingError as error:
        refuse(state, event, consumer, "not_mapped", error=str(error))
        return
    for key in new_keys:
        if key not in done:
            if consumer.is_timed and key not in keys:
                end_if_empty(state, consumer, key)
            state.write(event, Receipt(place_in_ledger(event), event.uri, consumer.id, "queued", key))


def _supersede(state: State, consumer: Consumer, event: AssetEvent, key: str | None) -> None:
    state.write(event, Receipt(place_in_ledger(event), event.uri, consumer.id, "superseded", key))


@dataclass(frozen=True)
class NamedEvents:
    """The queued events that an operator names; what is `None` names nothing, and then all match.

    Attributes:
        uri: the asset.
        event_id: one event.
        before: only events that were recorded before this time.
    """

    uri: str | None = None
    event_id: UUID | None = None
    before: datetime | None = None

    def has(self, event: AssetEvent) -> bool:
        """Return True if a queued event is one of them."""
        return (
            (self.uri is None or event.uri == self.uri)
            and (self.event_id is None or event.id == self.event_id)
            and (self.before is None or (event.recorded is not None and event.recorded < self.before))
        )


def check_removal(
    consumer: Consumer | None,
    target_key: str | None,
    *,
    narrowed: bool,
    pending_keys: Callable[[], Sequence[str]] = lambda: (),
) -> None:
    """Check that a removal names enough: events of a partitioned consumer need the consumer and the key.

    Contract 3.7.

    Parameters:
        consumer: the consumer whose queued events are removed; `None` for all consumers without partitions.
        target_key: the key of the pending partition, or `None`.
        narrowed: True if the removal names an asset or an event.
        pending_keys: returns the pending keys of the consumer, which the error lists.

    Raises:
        InvalidCall: something is missing, or a key is given that the consumer cannot have. `where` is `consumer` or
            `key`.
    """
    if consumer is None:
        if target_key is not None or not narrowed:
            raise InvalidCall(
                "no queue is named",
                where="consumer",
                rule="3.7",
                fix="Name a consumer; or, for queues without partitions, an asset or an event",
            )
    elif consumer.is_partitioned and not target_key:
        keys = pending_keys()
        known = f"; pending partitions: {some(list(keys))}" if keys else ""
        raise InvalidCall(
            f"the consumer {consumer.name} is partitioned{known}",
            where="key",
            rule="3.7",
            fix="Name the partition",
        )
    elif target_key is not None and not consumer.is_partitioned:
        raise InvalidCall(
            f"the consumer {consumer.name} is not partitioned", where="key", rule="3.7", fix="Leave the key out"
        )
