"""The base class of partition mappers (contract 5.1 and 5.4)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from assetflow.errors import InvalidPartition, MappingError, not_a

DEFAULT_MAX_KEYS = 1000


@dataclass(frozen=True, kw_only=True)
class PartitionMapper(ABC):
    """The base class of mappers: each turns the key of an update into the keys of the runs that consume it.

    Contract 5.1, 5.4.

    Parameters:
        max_downstream_keys: the most target keys that one key may give; by default 1000.

    Raises:
        InvalidPartition: the limit is not a whole number of at least 1.
    """

    max_downstream_keys: int | None = None

    def __post_init__(self) -> None:
        limit = cast(object, self.max_downstream_keys)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise InvalidPartition(
                f"max_downstream_keys is {limit!r}", fix="Give a whole number of at least 1.", rule="5.4"
            )

    def to_downstream(self, key: str) -> tuple[str, ...]:
        """Return the target keys of an update's key, each once: one, or several if the mapper fans out.

        Raises:
            MappingError: the mapper cannot read the key, or the key gives more target keys than allowed (contract 5.4).
        """
        keys = tuple(dict.fromkeys(self.map_key(key)))
        limit = self.max_downstream_keys or DEFAULT_MAX_KEYS
        if len(keys) > limit:
            raise MappingError(
                f"The partition key {key!r} gives {len(keys)} target keys, the limit is {limit}",
                fix="Raise max_downstream_keys of the mapper, or use a smaller window.",
                rule="5.4",
            )
        return keys

    def single_target(self, key: str) -> str:
        """Return the one target key of a key.

        Raises:
            MappingError: the key has several, or the mapper cannot read it.
        """
        keys = self.to_downstream(key)
        if len(keys) != 1 or self.fans_out:
            raise MappingError(
                f"The partition key {key!r} gives {len(keys)} target keys where one is needed",
                fix="A mapper that fans out cannot be part of a product, nor the upstream mapper of a fan-out.",
                rule="5.1",
            )
        return keys[0]

    @property
    def parts(self) -> tuple[PartitionMapper, ...]:
        """The mappers that this one is made of."""
        return ()

    @property
    def fans_out(self) -> bool:
        """True if one key may give several target keys."""
        return False

    @abstractmethod
    def map_key(self, key: str) -> Iterable[str]:
        """Return the target keys before duplicates are dropped and the limit is checked."""

    @abstractmethod
    def describe(self) -> str:
        """Return the mapper in words."""

    @abstractmethod
    def as_json(self) -> object:
        """Return plain JSON values, which `mapper_from_json` reads back."""

    def write_part(self, part: datetime | str) -> str:
        """Return the target key of a part of a window. A time becomes ISO text unless the mapper has an output format.

        Parameters:
            part: a naive wall time, or a segment of a `SegmentWindow`.
        """
        return part if isinstance(part, str) else part.isoformat()

    def limit_as_json(self) -> dict[str, object]:
        """Return `max_downstream_keys` as an option, if it was given."""
        return {} if self.max_downstream_keys is None else {"max_downstream_keys": self.max_downstream_keys}


def check_mapper(value: object) -> PartitionMapper:
    """Return the mapper, unchanged.

    Raises:
        InvalidPartition: the value is not a mapper, or a class of mappers without parentheses.
    """
    if isinstance(value, PartitionMapper):
        return value
    message, fix = not_a(value, "a partition mapper", "Give a mapper such as StartOfDayMapper()")
    raise InvalidPartition(message, fix=fix, rule="5.1")
