"""What all partition mappers have in common (contract 5.1 and 5.4)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from assetflow.errors import InvalidPartition, MappingError

DEFAULT_MAX_KEYS = 1000


@dataclass(frozen=True, kw_only=True)
class PartitionMapper(ABC):
    """Turns the key of an event into the target keys whose pending partitions it belongs to.

    Parameters:
        max_downstream_keys: the most target keys that one key may give; 1000 if none is given.

    Raises:
        InvalidPartition: a limit below 1.
    """

    max_downstream_keys: int | None = None

    def __post_init__(self) -> None:
        limit = cast(object, self.max_downstream_keys)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise InvalidPartition(
                f"max_downstream_keys is {limit!r}", fix="Give a whole number of at least 1.", rule="5.4"
            )

    def to_downstream(self, key: str) -> tuple[str, ...]:
        """The target keys of this key, each once: one, or several if the mapper fans out.

        Raises:
            MappingError: the mapper cannot read the key, or it gives more keys than allowed (5.4).
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
        """The one target key of this key.

        Raises:
            MappingError: it has several, or the mapper cannot read the key.
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
    def fans_out(self) -> bool:
        """Whether one key may give several target keys."""
        return False

    @abstractmethod
    def map_key(self, key: str) -> Iterable[str]:
        """The target keys, before duplicates are dropped and the limit is checked."""

    @abstractmethod
    def describe(self) -> str:
        """The mapper in words."""

    @abstractmethod
    def as_json(self) -> object:
        """Plain JSON values; `mapper_from_json` reads them back."""

    def write_part(self, part: datetime | str) -> str:
        """A part of a window as a target key; a time becomes ISO text unless the mapper has a format of its own."""
        return part if isinstance(part, str) else part.isoformat()

    def limit_as_json(self) -> dict[str, object]:
        """`max_downstream_keys` as an option, if it was given."""
        return {} if self.max_downstream_keys is None else {"max_downstream_keys": self.max_downstream_keys}
