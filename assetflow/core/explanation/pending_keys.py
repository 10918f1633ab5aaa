"""Pending partitions in short: for each leaf which upstream keys have come, and which are missing (5.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assetflow.core.backfill import mapper_of_leaf
from assetflow.core.book import Pending
from assetflow.core.conditions import Token
from assetflow.core.explanation.keys import rollup_keys
from assetflow.core.partitions import RollupMapper
from assetflow.core.schedules import Schedule


@dataclass(frozen=True)
class LeafKeys:
    """What one asset or alias of the condition has for a target key.

    Attributes:
        received, missing: upstream keys, sorted; of a leaf that is not rolled up nothing is known to be missing.
        needed: how many keys are enough.
    """

    leaf: str
    received: tuple[str, ...]
    missing: tuple[str, ...]
    needed: int

    def as_json(self) -> dict[str, object]:
        return {
            "asset": self.leaf,
            "received": list(self.received),
            "missing": list(self.missing),
            "needed": self.needed,
        }


def leaf_keys(
    schedule: Schedule, target_key: str, pending: Pending, tokens_of: Callable[[str], frozenset[Token]]
) -> tuple[LeafKeys, ...]:
    """What a pending partition has, leaf by leaf, from the short form of its queue."""
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
