"""A mapper by a table of keys (contract 8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from assetflow.core.partitions.base import PartitionMapper
from assetflow.core.partitions.keys import check_key
from assetflow.errors import InvalidEvent, InvalidPartition, MappingError

Table = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, init=False)
class StaticMapper(PartitionMapper):
    """A mapper by a table: each upstream key has one target key or several.

    >>> from assetflow.partitions import StaticMapper
    >>> regions = StaticMapper({"de": "eu", "fr": "eu", "us": ["na", "all"]})
    >>> regions.to_downstream("us"), regions.awaited("eu")
    (('na', 'all'), ('de', 'fr'))

    Contract 8.3. A target waits for all upstream keys that the table has for it.

    Parameters:
        table: the upstream keys, each with its target key or a list of them.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: the table is empty, or has something else than keys in it.
    """

    table: Table

    def __init__(self, table: Mapping[str, str | Sequence[str]], *, max_downstream_keys: int | None = None) -> None:
        object.__setattr__(self, "table", _table(table))
        object.__setattr__(self, "max_downstream_keys", max_downstream_keys)
        self.__post_init__()

    @property
    def fans_out(self) -> bool:
        return True

    def map_key(self, key: str) -> tuple[str, ...]:
        for upstream, targets in self.table:
            if upstream == key:
                return targets
        raise MappingError(
            f"The partition key {key!r} is not in the table of the mapper",
            fix="Add it to the table, or update the asset with one of its keys.",
            rule="5.4",
        )

    def awaited(self, target_key: str) -> tuple[str, ...]:
        """Return the upstream keys that the table has for a target key."""
        return tuple(upstream for upstream, targets in self.table if target_key in targets)

    def describe(self) -> str:
        return f"by a table of {len(self.table)} keys"

    def as_json(self) -> object:
        table = {key: targets[0] if len(targets) == 1 else list(targets) for key, targets in self.table}
        return {"static": {"table": table, **self.limit_as_json()} if self.max_downstream_keys else table}


def _table(value: object) -> Table:
    entries = dict(cast("Mapping[object, object]", value)) if isinstance(value, Mapping) else {}
    if not entries:
        raise InvalidPartition(
            f"A table cannot be made of {value!r}",
            fix='Write StaticMapper({"de": "eu", "us": ["na", "all"]}).',
            rule="8.3",
        )
    return tuple((_key(key), _targets(targets)) for key, targets in entries.items())


def _targets(value: object) -> tuple[str, ...]:
    targets = [value] if isinstance(value, str) else list(cast("Sequence[object]", value)) if _is_list(value) else []
    if not targets:
        raise InvalidPartition(
            f"{value!r} is neither a target key nor a list of them", fix="Give at least one target key.", rule="8.3"
        )
    return tuple(dict.fromkeys(_key(target) for target in targets))


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _key(value: object) -> str:
    try:
        return check_key(value)
    except InvalidEvent as cause:
        raise InvalidPartition(cause.message, fix=cause.fix, rule="8.3") from cause
