"""Evaluate a condition over queued events (contract 4.1, 5.2). Nothing else in assetflow does it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from assetflow.core.partitions import RollupMapper, check_key
from assetflow.core.values.conditions import Condition, Gate, Token, fold_condition
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedules import Schedule
from assetflow.errors import InvalidEvent, MappingError

Pending = Mapping[str, Mapping[str | None, int]]
"""The queued events of one consumer and target key in short: URI to key to the number of events."""

TokensOf = Callable[[str], frozenset[Token]]


def holds(condition: Condition, facts: Mapping[Token, int]) -> bool:
    """Return True if a condition holds, whenever the events came. AND of nothing is true, OR of nothing is false.

    Parameters:
        facts: how many queued events match each token; tokens without any may be left out.
    """
    return bool(fold_condition(condition, lambda leaf: facts.get(leaf.token, 0), _gate_holds))


def _gate_holds(gate: Gate, members: Sequence[int]) -> bool:
    if gate.kind == "all" or gate.is_time_gate:
        return all(members)
    if gate.kind == "any":
        return any(members)
    if gate.kind == "times":
        return members[0] >= cast("int", gate.argument)
    return sum(map(bool, members)) >= cast("int", gate.argument)


def facts_of(schedule: Schedule, target_key: str | None, pending: Pending, tokens_of: TokensOf) -> dict[Token, int]:
    """Return how many queued events match each token; those of a rolled-up asset count when it is complete."""
    facts: dict[Token, int] = {}
    for uri, keys in pending.items():
        tokens = tokens_of(uri)
        if not schedule.has_rollup or is_complete(schedule, target_key, keys, tokens):
            count = sum(keys.values())
            for token in tokens:
                facts[token] = facts.get(token, 0) + count
    return facts


def is_complete(
    schedule: Schedule, target_key: str | None, keys: Collection[str | None], tokens: frozenset[Token]
) -> bool:
    """Return True if the events of one asset are enough for the target key. Contract 5.2.

    One event is enough, unless the asset is rolled up: then its wait policy must be met.

    Parameters:
        keys: the keys of the asset's queued events.
        tokens: the tokens of the asset, by which its mapper is found.
    """
    if schedule.partitioning is None or target_key is None:
        return True
    mapper = schedule.partitioning.mapper_for(tokens)
    if not isinstance(mapper, RollupMapper):
        return True
    return mapper.is_met(target_key, [key for key in keys if key is not None])


def evaluate(schedule: Schedule, target_key: str | None, pending: Pending, tokens_of: TokensOf) -> bool:
    """Return True if the schedule's condition holds over the queued events. Without any it does not. Contract 4.1.

    It is not asked when the events came: where that counts, `Reach` tells more.
    """
    if schedule.condition is None or not pending:
        return False
    # Most events meet a condition that still lacks an asset. This test finds that without looking at each leaf.
    if not pending.keys() >= schedule.condition.needed_uris:
        return False
    if schedule.condition.needs_nothing_else and not schedule.has_rollup:
        return True
    return holds(schedule.condition, facts_of(schedule, target_key, pending, tokens_of))


def target_keys_of(consumer: Consumer, event: AssetEvent, tokens: frozenset[Token]) -> Sequence[str | None]:
    """Return the target keys of an event for a consumer, each once; `(None,)` for a plain consumer.

    Contract 5.1.

    Parameters:
        tokens: the tokens of the event's asset, by which its mapper is found.

    Raises:
        MappingError: the mapper cannot read the event's key, or gives too many target keys or an invalid one. Contract
            5.4.
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
    """Check a target key as any partition key: it becomes the key of the run's own updates. Contract 2.5."""
    try:
        check_key(key)
    except InvalidEvent as error:
        raise MappingError(
            f"The partition key {of!r} gives an invalid target key: {error.message}",
            fix="Change the formats of the mapper, or the key",
            rule="5.4",
        ) from error
