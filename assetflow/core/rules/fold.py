"""The fold over recordings: record, queue, decide (contract chapters 2 to 5).

The evaluator, the simulator and the tests all run these functions; only the source of their state differs. A
recording and the pass that follows it belong to one unit of work.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from assetflow.core.freshness.recording import made_of, record_update, with_data_version
from assetflow.core.partitions import EveryTargetMapper
from assetflow.core.rules import clock, keeping
from assetflow.core.rules.evaluation import evaluate, target_keys_of, wanted_keys
from assetflow.core.rules.keeping import start_run_of
from assetflow.core.rules.state import State
from assetflow.core.rules.state.names import place_in_ledger
from assetflow.core.rules.state.state import decision_id
from assetflow.core.rules.waits import end_if_empty
from assetflow.core.values.announcements import FailedChecks, failed_checks
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision, Receipt, ReceiptStatus
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.errors import InvalidEvent, MappingError

# The consumers that a pass has to check, by id, each with the target keys to check; `None` means all keys.
Touched = dict[int, tuple[Consumer, set[str | None] | None]]


class Passing(Protocol):
    """Makes a pass over the touched consumers at a given time, and returns its decisions: `pass_over`, or another."""

    def __call__(
        self,
        state: State,
        touched: Touched,
        now: datetime,
        instant: datetime | None = None,
        *,
        recorded_from: datetime | None = None,
    ) -> list[Decision]: ...


@dataclass
class Recorded:
    """The result of `record`.

    Attributes:
        events: the events that were new, with their sequences.
        earliest, latest: the first and the last of their instants; `None` without new events (contract 9.6).
        touched: the consumers for which something was queued or may now be judged in another way.
        refused: what was observed though it is not a source, each with the error (contract 8.2).
        new_assets: the URIs that were updated for the first time.
        warnings: sentences for the log.
        failed_checks: what failed a check, of new updates and of data that was held back.
    """

    events: list[AssetEvent] = field(default_factory=list[AssetEvent])
    earliest: datetime | None = None
    latest: datetime | None = None
    touched: Touched = field(default_factory=dict[int, "tuple[Consumer, set[str | None] | None]"])
    refused: list[tuple[AssetEvent, InvalidEvent]] = field(default_factory=list[tuple[AssetEvent, InvalidEvent]])
    new_assets: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    failed_checks: list[FailedChecks] = field(default_factory=list[FailedChecks])


def record(state: State, recording: Recording, now: datetime) -> Recorded:
    """Append the new events of a recording, and queue each for every consumer that wants it. Contract 3.1."""
    result, durable = Recorded(), now if recording.durable is None else min(recording.durable, now)
    events = state.events.new(recording)
    if recording.observed:
        result.refused += keeping.check_observed(state, recording)
        events = (*events, *keeping.observed_updates(state, recording, durable))
    for event in events:
        new = _declare(state, event, result)
        tokens = state.names.tokens_of(event.asset.uri)
        consumers = state.consumers.wanting(tokens)
        instant = durable
        timed = [each for each in consumers if each.is_timed]
        if timed:
            instant = _after_decided(state, event, instant, timed, tokens)
        recorded = _append(state, event, recording.id, instant)
        _offer_to_all(state, recorded, consumers, tokens, result.touched)
        touch_judging(state, event.asset.uri, new, result.touched)
        result.events.append(recorded)
        if result.earliest is None or instant < result.earliest:
            result.earliest = instant
        if result.latest is None or result.latest < instant:
            result.latest = instant
    if recording.observed or recording.confirmed:
        keeping.remember(state, recording, durable)
    result.failed_checks += failed_checks(result.events, recording.held_back)
    if len(result.events) < len(recording.events):
        result.warnings += [
            _content_differs(event) for event in recording.events if state.events.is_recorded_otherwise(event)
        ]
    return result


def _append(state: State, event: AssetEvent, recording: UUID, instant: datetime) -> AssetEvent:
    """Append an event to the ledger, with its data version if anything reads or makes its asset. Contract 8.2."""
    if not state.freshness.concerns(event.asset.uri):
        return state.append(event, recording, instant)
    event = keeping.placed(state, event)
    start_run_of(state, event, instant)
    made = made_of(state.freshness, event)
    recorded = state.append(with_data_version(state.freshness, event, made), recording, instant)
    record_update(state.freshness, recorded, made)
    return recorded


def _content_differs(event: AssetEvent) -> str:
    key = "" if event.partition_key is None else f", partition {event.partition_key}"
    return (
        f"event {event.id} is already recorded with other content: this update of {event.uri}{key} changes nothing. "
        "Two events with the same id count as one (2.2)"
    )


def _after_decided(
    state: State, event: AssetEvent, durable: datetime, timed: Sequence[Consumer], tokens: frozenset[Token]
) -> datetime:
    """Return the instant of an event: when it became durable, but after what the clock has decided. Contract 9.6."""
    decided = [
        clock.decided_until(state, consumer, key) for consumer in timed for key in wanted_keys(consumer, event, tokens)
    ]
    return max([durable, *(moment for moment in decided if moment is not None)])


def pass_over(
    state: State,
    touched: Touched,
    now: datetime,
    instant: datetime | None = None,
    *,
    recorded_from: datetime | None = None,
) -> list[Decision]:
    """Make one pass over the touched consumers: at most one decision for each consumer and target key. Contract 4.3.

    Parameters:
        instant: the instant that the decisions bear; by default now. Contract 9.6.
        recorded_from: the earliest instant of the events after whose recording the pass comes; `None` if it has
            another reason.
    """
    decisions: list[Decision] = []
    for number in sorted(touched):
        consumer, keys = touched[number]
        decisions += evaluate_consumer(state, consumer, keys, now, instant, recorded_from=recorded_from)
    return decisions


def record_and_pass(
    state: State, recording: Recording, now: datetime, passing: Passing = pass_over
) -> tuple[Recorded, list[Decision]]:
    """Record a recording and make the pass that follows it. Contract 4.3."""
    result = record(state, recording, now)
    return result, passing(state, result.touched, now, result.latest, recorded_from=result.earliest or now)


def evaluate_consumer(
    state: State,
    consumer: Consumer,
    keys: Collection[str | None] | None,
    now: datetime,
    instant: datetime | None = None,
    *,
    recorded_from: datetime | None = None,
) -> list[Decision]:
    """Decide for each target key of a consumer whose condition holds, and return the decisions.

    Parameters:
        keys: the target keys to check; `None` for all that have queued events.
        instant: the instant that the decisions bear; by default now. Contract 9.6.
        recorded_from: as in `pass_over`.
    """
    if not consumer.decides and not consumer.is_timed:
        return []
    if keys is None:
        # The names of assets or the consumer have changed too.
        keys, recorded_from = state.queues.target_keys(consumer.id), None
    made: list[Decision] = []
    for key in sorted(keys, key=lambda key: key or "") if len(keys) > 1 else keys:
        if consumer.is_timed:
            made += clock.pass_over_queue(state, consumer, key, instant or now, recorded_from=recorded_from)
        else:
            made += _decide(state, consumer, key, instant or now)
    return made


def _decide(state: State, consumer: Consumer, key: str | None, now: datetime) -> Sequence[Decision]:
    """Make a decision if the condition holds. It consumes everything that is queued for the key. Contract 4.1, 4.2."""
    pending = state.queues.pending(consumer.id, key)
    # Most passes end here, without a look at the schedule.
    if len(pending) < consumer.fewest or (consumer.coalesces and state.decisions.is_busy(consumer.id, key)):
        return ()
    if not evaluate(consumer.schedule, key, pending, state.names.tokens_of):
        return ()
    events = tuple(state.queues.queued(consumer.id, key))
    number = decision_id(consumer.deployment_id, key, (event.id for event in events))
    decision = Decision(number, consumer.id, consumer.deployment_id, key, events, now)
    state.decide(decision)
    return (decision,)


def touch_judging(state: State, uri: str, new: Collection[Token], touched: Touched) -> None:
    """Touch the consumers whose condition or mapping may change because a URI has got these tokens.

    A condition is evaluated with the names and links of that moment, also for events that were queued before. Contract
    4.1.
    """
    if not new:
        return
    for consumer in state.consumers.wanting(state.names.tokens_of(uri)):
        if not consumer.schedule.judging_tokens.isdisjoint(new):
            touched[consumer.id] = (consumer, None)


def _declare(state: State, event: AssetEvent, result: Recorded) -> list[Token]:
    """Save the name of an event's asset and link its aliases; return the tokens that the asset did not have.

    A name stays with the first URI that had it. Contract 1.2.
    """
    asset = event.asset
    new: list[Token] = []
    names = state.names.names_of(asset.uri)
    if not names:
        result.new_assets.append(asset.uri)
        if event.aliases:
            result.warnings.append(f"{asset.uri} is a new asset; it came through alias {', '.join(event.aliases)}")
    for name in asset.names:
        if name in names:
            continue
        owner = state.names.owner_of(name)
        if owner is None:
            state.declare(name, asset.uri)
            new.append(Token("name", name))
        else:
            result.warnings.append(
                f"the name {name!r} belongs to {owner}; the update of {asset.uri} is recorded without it"
            )
    linked = state.names.aliases_of(asset.uri) if event.aliases else ()
    for alias in event.aliases:
        if alias not in linked:
            state.names.link(alias, asset.uri)
            new.append(Token("alias", alias))
    return new


def _offer_to_all(
    state: State, event: AssetEvent, consumers: Collection[Consumer], tokens: frozenset[Token], touched: Touched
) -> None:
    if not consumers:
        state.write(event, Receipt(place_in_ledger(event), event.asset.uri, None, "no_consumer"))
    for consumer in consumers:
        keys = _offer(state, event, consumer, tokens)
        if keys:
            _, seen = touched.setdefault(consumer.id, (consumer, set()))
            if seen is not None:
                seen.update(keys)


def _offer(state: State, event: AssetEvent, consumer: Consumer, tokens: frozenset[Token]) -> Sequence[str | None]:
    """Queue an event for a consumer, or write why not: the first reason that applies. Contract 3.5.

    Returns:
        The target keys under which it is queued.
    """
    if consumer.schedule.keeping is not None:
        return _compare(state, event, consumer, tokens)
    if not consumer.wants_key(event.partition_key):
        return refuse(state, event, consumer, "not_for_consumer")
    if consumer.takes_nothing:
        return refuse(state, event, consumer, "dropped")
    try:
        keys = target_keys_of(consumer, event, tokens)
    except MappingError as error:
        return refuse(state, event, consumer, "not_mapped", error=str(error))
    for key in keys:
        if consumer.is_timed:
            end_if_empty(state, consumer, key)
        state.write(event, Receipt(place_in_ledger(event), event.asset.uri, consumer.id, "queued", key))
    return keys


def _compare(state: State, event: AssetEvent, consumer: Consumer, tokens: frozenset[Token]) -> Sequence[str | None]:
    """Write the receipt of an event of an input of an Eager or Lazy consumer, which has no queue. Contract 8.17."""
    mapper = None if consumer.schedule.partitioning is None else consumer.schedule.partitioning.mapper_for(tokens)
    try:
        if event.partition_key is not None and not isinstance(mapper, EveryTargetMapper):
            target_keys_of(consumer, event, tokens)
    except MappingError as error:
        return refuse(state, event, consumer, "not_mapped", error=str(error))
    return refuse(state, event, consumer, "compared")


def refuse(
    state: State, event: AssetEvent, consumer: Consumer, status: ReceiptStatus, *, error: str = ""
) -> Sequence[str | None]:
    """Write the receipt that says why an event is not queued for a consumer."""
    state.write(event, Receipt(place_in_ledger(event), event.asset.uri, consumer.id, status, error=error))
    return ()
