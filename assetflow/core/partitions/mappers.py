"""Mappers of keys that are plain texts, and mappers made of mappers (contract 5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from assetflow.core.partitions.base import PartitionMapper
from assetflow.core.partitions.keys import check_key
from assetflow.errors import InvalidEvent, InvalidPartition, MappingError


@dataclass(frozen=True)
class IdentityMapper(PartitionMapper):
    """The target key is the event's key."""

    def map_key(self, key: str) -> tuple[str]:
        return (key,)

    def describe(self) -> str:
        return "the key itself"

    def as_json(self) -> object:
        options = self.limit_as_json()
        return {"identity": options} if options else "identity"


@dataclass(frozen=True)
class AllowedKeyMapper(PartitionMapper):
    """The target key is the event's key, if it is one of a list.

    Parameters:
        allowed_keys: the keys; duplicates count once.

    Raises:
        InvalidPartition: there is none, or one is no text.
    """

    allowed_keys: Sequence[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = cast(object, self.allowed_keys)
        keys = list(cast("Iterable[object]", given)) if isinstance(given, Iterable) else []
        if isinstance(given, str) or not keys or not all(isinstance(key, str) for key in keys):
            raise InvalidPartition(
                f"The allowed keys are {given!r}",
                fix='Give at least one key, each a text: AllowedKeyMapper(["us", "eu"]).',
                rule="5.1",
            )
        object.__setattr__(self, "allowed_keys", tuple(dict.fromkeys(keys)))

    def map_key(self, key: str) -> tuple[str]:
        if key not in self.allowed_keys:
            raise MappingError(
                f"The partition key {key!r} is not among the allowed ones: {', '.join(self.allowed_keys)}",
                fix=f"Write it as in {self.allowed_keys[0]!r}, or add it to the mapper.",
                rule="5.4",
            )
        return (key,)

    def describe(self) -> str:
        return f"the key itself, one of {', '.join(self.allowed_keys)}"

    def as_json(self) -> object:
        return {"allowed": list(self.allowed_keys), **self.limit_as_json()}


@dataclass(frozen=True)
class FixedKeyMapper(PartitionMapper):
    """Every key has the same target key.

    Parameters:
        downstream_key: the target key.

    Raises:
        InvalidPartition: it can be no partition key.
    """

    downstream_key: str

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            check_key(self.downstream_key)
        except InvalidEvent as cause:
            raise InvalidPartition(cause.message, fix=cause.fix, rule="5.1") from cause

    def map_key(self, key: str) -> tuple[str]:  # noqa: ARG002
        return (self.downstream_key,)

    def describe(self) -> str:
        return f"always {self.downstream_key}"

    def as_json(self) -> object:
        return {"fixed": self.downstream_key, **self.limit_as_json()}


@dataclass(frozen=True, init=False)
class ProductMapper(PartitionMapper):
    """Keys of several dimensions, such as `us|2026-03-14T15:09:26`: each part goes through its own mapper.

    Parameters:
        mapper0, mapper1, *mappers: one mapper for each part, at least two.
        delimiter: what stands between the parts, in keys and target keys.

    Raises:
        InvalidPartition: fewer than two mappers, or an empty delimiter.
    """

    mappers: tuple[PartitionMapper, ...]
    delimiter: str

    def __init__(self, *mappers: PartitionMapper, delimiter: str = "|", max_downstream_keys: int | None = None) -> None:
        object.__setattr__(self, "mappers", _at_least_two("A product", mappers))
        object.__setattr__(self, "delimiter", delimiter)
        object.__setattr__(self, "max_downstream_keys", max_downstream_keys)
        self.__post_init__()
        if not isinstance(cast(object, delimiter), str) or not delimiter:
            raise InvalidPartition(f"The delimiter is {delimiter!r}", fix='Give a text such as "|".', rule="5.1")

    def map_key(self, key: str) -> tuple[str]:
        parts = key.split(self.delimiter)
        if len(parts) != len(self.mappers):
            raise MappingError(
                f"The partition key {key!r} has {len(parts)} parts instead of {len(self.mappers)}",
                fix=f"Write it as {self.delimiter.join(['…'] * len(self.mappers))}.",
                rule="5.4",
            )
        targets = [mapper.single_target(part) for mapper, part in zip(self.mappers, parts, strict=True)]
        return (self.delimiter.join(targets),)

    def describe(self) -> str:
        return f" {self.delimiter} ".join(mapper.describe() for mapper in self.mappers)

    def as_json(self) -> object:
        mappers = [mapper.as_json() for mapper in self.mappers]
        options = self.limit_as_json() | ({} if self.delimiter == "|" else {"delimiter": self.delimiter})
        return {"product": {"mappers": mappers, **options} if options else mappers}


@dataclass(frozen=True, init=False)
class ChainMapper(PartitionMapper):
    """Mappers one after another: the target keys of one are the keys of the next.

    Parameters:
        mapper0, mapper1, *mappers: at least two.

    Raises:
        InvalidPartition: fewer than two mappers.
    """

    mappers: tuple[PartitionMapper, ...]

    def __init__(self, *mappers: PartitionMapper, max_downstream_keys: int | None = None) -> None:
        object.__setattr__(self, "mappers", _at_least_two("A chain", mappers))
        object.__setattr__(self, "max_downstream_keys", max_downstream_keys)
        self.__post_init__()

    @property
    def fans_out(self) -> bool:
        return any(mapper.fans_out for mapper in self.mappers)

    def map_key(self, key: str) -> Iterable[str]:
        keys: tuple[str, ...] = (key,)
        for mapper in self.mappers:
            keys = tuple(target for current in keys for target in mapper.to_downstream(current))
        return keys

    def describe(self) -> str:
        return ", then ".join(mapper.describe() for mapper in self.mappers)

    def as_json(self) -> object:
        return {"chain": [mapper.as_json() for mapper in self.mappers], **self.limit_as_json()}


def _at_least_two(what: str, mappers: tuple[PartitionMapper, ...]) -> tuple[PartitionMapper, ...]:
    if len(mappers) < 2:
        raise InvalidPartition(f"{what} of {len(mappers)} mappers maps nothing", fix="Give at least two.", rule="5.1")
    strangers = [mapper for mapper in mappers if not isinstance(cast(object, mapper), PartitionMapper)]
    if strangers:
        raise InvalidPartition(
            f"{strangers[0]!r} is no partition mapper", fix="Give mappers such as StartOfDayMapper().", rule="5.1"
        )
    return mappers
