"""The upstream keys of a pending partition: which have come and which are missing (contract 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from assetflow.core.partitions import PartitionMapper, RollupMapper
from assetflow.core.rules.evaluation import Pending
from assetflow.core.rules.timers import mapper_of_leaf
from assetflow.core.shapes import called, shape
from assetflow.core.values.conditions import Token
from assetflow.core.values.schedules import Schedule
from assetflow.errors import MappingError


@dataclass(frozen=True)
class RollupKeys:
    """The upstream keys of one rolled-up asset for one target key.

    Attributes:
        received, missing: the awaited keys that have come, and those that have not, sorted.
        needed: the number of keys that are enough.
        readable: the mapper can read the target key back. If it cannot, no keys are enough.
    """

    received: tuple[str, ...]
    missing: tuple[str, ...] = ()
    needed: int = 0
    readable: bool = True


@shape
class LeafKeys:
    """The upstream keys of one leaf of the condition for one target key."""

    leaf: str = field(metadata=called("asset"))
    """What texts for people call the leaf."""
    received: tuple[str, ...]
    """The keys that have come, sorted."""
    missing: tuple[str, ...]
    """The keys that have not come, sorted; empty for a leaf that is not rolled up."""
    needed: int
    """The number of keys that are enough."""


def rollup_keys(mapper: RollupMapper, target_key: str, keys: Collection[str]) -> RollupKeys:
    """Return which keys a roll-up has received for a target key, and which it still waits for.

    Parameters:
        keys: the keys of the asset's queued events.
    """
    try:
        awaited = mapper.awaited(target_key)
    except MappingError:
        return RollupKeys(tuple(sorted(keys)), readable=False)
    received = awaited.intersection(keys)
    needed = mapper.wait_policy.needed(len(awaited))
    return RollupKeys(tuple(sorted(received)), tuple(sorted(awaited - received)), needed)


def leaf_keys(
    schedule: Schedule, target_key: str, pending: Pending, tokens_of: Callable[[str], frozenset[Token]]
) -> tuple[LeafKeys, ...]:
    """Return the upstream keys of a pending partition, leaf by leaf.

    Parameters:
        pending: each URI with the keys of its queued events.
        tokens_of: returns the tokens of a URI.
    """
    if schedule.condition is None or schedule.partitioning is None:
        return ()
    found: dict[Token, LeafKeys] = {}
    for leaf in schedule.condition.leaves:
        uris = [uri for uri in pending if leaf.token in tokens_of(uri)]
        keys = {key for uri in uris for key in pending[uri] if key is not None}
        mapper = schedule.partitioning.mapper_for(tokens_of(uris[0])) if uris else None
        mapper = mapper or mapper_of_leaf(schedule.partitioning, leaf)
        if isinstance(mapper, RollupMapper):
            rolled = rollup_keys(mapper, target_key, keys)
            found[leaf.token] = LeafKeys(leaf.label, rolled.received, rolled.missing, rolled.needed)
        else:
            found[leaf.token] = LeafKeys(leaf.label, tuple(sorted(keys)), (), 1)
    return tuple(found.values())


Received = Mapping[str, Collection[str]]


def targets_of_keys(mapper: PartitionMapper, keys: Iterable[str]) -> dict[str, list[str]]:
    """Return the target keys of some keys, each with its keys. A key that the mapper cannot read has none."""
    found: dict[str, list[str]] = {}
    for key in keys:
        try:
            targets = mapper.to_downstream(key)
        except MappingError:
            continue
        for target in targets:
            found.setdefault(target, []).append(key)
    return found


def awaited_keys(mapper: PartitionMapper, keys_of: Mapping[str, Collection[str]], received: Received) -> set[str]:
    """Return those of some absent keys that a consumer waits for.

    Parameters:
        keys_of: the absent keys of each target key.
        received: the pending target keys, each with the keys of the asset that are queued for it.
    """
    found: set[str] = set()
    for target, queued in received.items():
        absent = keys_of.get(target, ())
        if isinstance(mapper, RollupMapper):
            rolled = rollup_keys(mapper, target, queued)
            if len(rolled.received) < rolled.needed:
                found |= set(rolled.missing).intersection(absent)
        elif len(absent) == 1 and not queued:
            # Of several keys any would do, so that none of them is missing.
            found |= set(absent)
    return found
