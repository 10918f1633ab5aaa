"""Which keys of an asset the pending partitions of a consumer wait for (contract 5.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from assetflow.core.explain.pending_keys import rollup_keys
from assetflow.core.partitions import PartitionMapper, RollupMapper
from assetflow.errors import MappingError

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
