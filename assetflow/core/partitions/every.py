"""Mappers whose keys belong to every target: all keys, the last ones, or those named (contract 8.3).

They never start a run of a partitioned flow. A flow without partitions takes no other mappers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NoReturn, cast

from assetflow.core.json_data import check_key
from assetflow.core.partitions.base import PartitionMapper
from assetflow.errors import InvalidEvent, InvalidPartition, MappingError


@dataclass(frozen=True)
class EveryTargetMapper(PartitionMapper):
    """The base class of mappers that choose the keys which every target reads."""

    @abstractmethod
    def chosen(self, keys: Sequence[str]) -> Collection[str]:
        """Return those of an asset's keys that a target reads.

        Parameters:
            keys: all keys that there are, sorted as text.
        """

    def map_key(self, key: str) -> NoReturn:
        raise MappingError(
            f"The partition key {key!r} belongs to every target: {self.describe()}",
            fix="Give an asset that starts runs a mapper with target keys, such as IdentityMapper().",
            rule="8.3",
        )


@dataclass(frozen=True)
class AllKeysMapper(EveryTargetMapper):
    """A mapper with which every target reads all keys.

    >>> from assetflow.partitions import AllKeysMapper
    >>> AllKeysMapper().chosen(["de", "fr"])
    ['de', 'fr']

    Contract 8.3.

    Parameters:
        max_downstream_keys: as in `PartitionMapper`.
    """

    def chosen(self, keys: Sequence[str]) -> Collection[str]:
        return keys

    def describe(self) -> str:
        return "all keys"

    def as_json(self) -> object:
        return {"all_keys": self.limit_as_json()}


@dataclass(frozen=True)
class LastMapper(EveryTargetMapper):
    """A mapper with which every target reads the greatest keys, as text.

    >>> from assetflow.partitions import LastMapper
    >>> LastMapper(2).chosen(["2026-03-12", "2026-03-13", "2026-03-14"])
    ['2026-03-13', '2026-03-14']

    Contract 8.3.

    Parameters:
        n: how many keys.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: `n` is not a whole number of at least 1.
    """

    n: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        n = cast(object, self.n)
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise InvalidPartition(
                f"LastMapper({n!r}) is not a number of keys", fix="Give a whole number of at least 1.", rule="8.3"
            )

    def chosen(self, keys: Sequence[str]) -> Collection[str]:
        return keys[-self.n :]

    def describe(self) -> str:
        return "the last key" if self.n == 1 else f"the last {self.n} keys"

    def as_json(self) -> object:
        return {"last": {"n": self.n, **self.limit_as_json()} if self.max_downstream_keys else self.n}


@dataclass(frozen=True)
class KeysMapper(EveryTargetMapper):
    """A mapper with which every target reads the keys that are named, and waits for them.

    >>> from assetflow.partitions import KeysMapper
    >>> KeysMapper(["de", "fr"]).chosen(["de", "us"])
    ['de']

    Contract 8.3.

    Parameters:
        keys: the keys, at least one; duplicates count once.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: no key is given, or a key is `None`.
    """

    keys: Sequence[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = cast(object, self.keys)
        keys = list(cast("Sequence[object]", given)) if isinstance(given, list | tuple) else []
        if not keys:
            raise InvalidPartition(
                f"A list of keys cannot be made of {given!r}", fix='Write KeysMapper(["de", "fr"]).', rule="8.3"
            )
        try:
            object.__setattr__(self, "keys", tuple(dict.fromkeys(check_key(key) for key in keys)))
        except InvalidEvent as cause:
            raise InvalidPartition(cause.message, fix=cause.fix, rule="8.3") from cause

    def chosen(self, keys: Sequence[str]) -> Collection[str]:
        return [key for key in keys if key in self.keys]

    def describe(self) -> str:
        return f"the keys {', '.join(self.keys)}"

    def as_json(self) -> object:
        keys = list(self.keys)
        return {"keys": {"keys": keys, **self.limit_as_json()} if self.max_downstream_keys else keys}
