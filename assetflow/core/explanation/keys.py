"""Which keys of a roll-up have come, and which have not (contract 5.2)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from assetflow.core.partitions import RollupMapper
from assetflow.errors import MappingError


@dataclass(frozen=True)
class RollupKeys:
    """The upstream keys of one asset for one target key.

    Attributes:
        received, missing: of the awaited keys, sorted.
        needed: how many of them are enough.
        readable: whether the mapper can read the target key back; without that nothing is enough.
    """

    received: tuple[str, ...]
    missing: tuple[str, ...] = ()
    needed: int = 0
    readable: bool = True


def rollup_keys(mapper: RollupMapper, target_key: str, keys: Collection[str]) -> RollupKeys:
    """What a roll-up has of what it waits for."""
    try:
        awaited = mapper.awaited(target_key)
    except MappingError:
        return RollupKeys(tuple(sorted(keys)), readable=False)
    received = awaited.intersection(keys)
    needed = mapper.wait_policy.needed(len(awaited))
    return RollupKeys(tuple(sorted(received)), tuple(sorted(awaited - received)), needed)
