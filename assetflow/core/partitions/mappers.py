"""Mappers of keys that are plain texts, and mappers that combine others (contract 5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from assetflow.core.partitions.base import PartitionMapper, check_mapper, checked_key
from assetflow.errors import InvalidPartition, MappingError


@dataclass(frozen=True)
class IdentityMapper(PartitionMapper):
    """A mapper that keeps the key: the target key is the update's key.

    >>> from assetflow.partitions import IdentityMapper
    >>> IdentityMapper().to_downstream("2026-11-20")
    ('2026-11-20',)

    Contract 5.1.

    Parameters:
        max_downstream_keys: as in `PartitionMapper`.
    """

    def map_key(self, key: str) -> tuple[str]:
        return (key,)

    def describe(self) -> str:
        return "the key itself"

    def as_json(self) -> object:
        options = self.limit_as_json()
        return {"identity": options} if options else "identity"


@dataclass(frozen=True)
class AllowedKeyMapper(PartitionMapper):
    """A mapper that keeps the key if it is one of a list, and refuses any other.

    >>> from assetflow.partitions import AllowedKeyMapper
    >>> AllowedKeyMapper(["us", "eu"]).to_downstream("eu")
    ('eu',)

    Contract 5.1.

    Parameters:
        allowed_keys: the keys; duplicates count once. With an empty list every key is refused.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: `allowed_keys` is not a list of texts.
    """

    allowed_keys: Sequence[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = cast(object, self.allowed_keys)
        keys = list(cast("Iterable[object]", given)) if isinstance(given, Iterable) else [given]
        if isinstance(given, str) or not all(isinstance(key, str) for key in keys):
            raise InvalidPartition(
                f"The allowed keys are {given!r}",
                fix='Give a list of texts: AllowedKeyMapper(["us", "eu"]).',
                rule="5.1",
            )
        object.__setattr__(self, "allowed_keys", tuple(dict.fromkeys(keys)))

    def map_key(self, key: str) -> tuple[str]:
        if key not in self.allowed_keys:
            raise MappingError(
                f"The partition key {key!r} is not one of the allowed keys: {self._listed()}",
                fix="Update the asset with one of them, or add the key to the mapper.",
                rule="5.4",
            )
        return (key,)

    def describe(self) -> str:
        return f"the key itself, one of {self._listed()}"

    def _listed(self) -> str:
        return ", ".join(self.allowed_keys) or "(none)"

    def as_json(self) -> object:
        return {"allowed": list(self.allowed_keys), **self.limit_as_json()}


@dataclass(frozen=True)
class FixedKeyMapper(PartitionMapper):
    """A mapper with one target key for every key.

    >>> from assetflow.partitions import FixedKeyMapper
    >>> FixedKeyMapper("all").to_downstream("2026-11-20")
    ('all',)

    Contract 5.1.

    Parameters:
        downstream_key: the target key.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: `downstream_key` cannot be a partition key (contract 2.5).
    """

    downstream_key: str

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_key(self.downstream_key, "5.1")

    def map_key(self, key: str) -> tuple[str]:  # noqa: ARG002
        return (self.downstream_key,)

    def describe(self) -> str:
        return f"always {self.downstream_key}"

    def as_json(self) -> object:
        return {"fixed": self.downstream_key, **self.limit_as_json()}


@dataclass(frozen=True, init=False)
class ProductMapper(PartitionMapper):
    """A mapper of keys with several parts, such as `us|2026-03-14T15:09:26`: each part goes through its own mapper.

    >>> from assetflow.partitions import IdentityMapper, ProductMapper, StartOfDayMapper
    >>> ProductMapper(IdentityMapper(), StartOfDayMapper()).to_downstream("us|2026-03-14T15:09:26")
    ('us|2026-03-14',)

    Contract 5.1.

    Parameters:
        mappers: one mapper for each part, at least two.
        delimiter: the text between the parts, in keys and in target keys. With an empty one every key is refused.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: there are fewer than two mappers, or the delimiter is not a text.
    """

    mappers: tuple[PartitionMapper, ...]
    delimiter: str

    def __init__(self, *mappers: PartitionMapper, delimiter: str = "|", max_downstream_keys: int | None = None) -> None:
        checked = _at_least_two("A product", mappers)
        vars(self).update(mappers=checked, delimiter=delimiter, max_downstream_keys=max_downstream_keys)
        self.__post_init__()
        if not isinstance(cast(object, delimiter), str):
            raise InvalidPartition(f"The delimiter is {delimiter!r}", fix='Give a text such as "|".', rule="5.1")

    @property
    def parts(self) -> tuple[PartitionMapper, ...]:
        return self.mappers

    def map_key(self, key: str) -> tuple[str]:
        if not self.delimiter:
            raise MappingError(
                f"An empty delimiter cannot split the partition key {key!r}",
                fix='Give the ProductMapper a delimiter, such as "|".',
                rule="5.4",
            )
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
    """A chain of mappers: the target keys of one are the keys of the next.

    >>> from assetflow.partitions import ChainMapper, FixedKeyMapper, StartOfDayMapper
    >>> ChainMapper(StartOfDayMapper(), FixedKeyMapper("all")).to_downstream("2026-03-14T15:09:26")
    ('all',)

    Contract 5.1.

    Parameters:
        mappers: the mappers in their order, at least two.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: there are fewer than two mappers.
    """

    mappers: tuple[PartitionMapper, ...]

    def __init__(self, *mappers: PartitionMapper, max_downstream_keys: int | None = None) -> None:
        vars(self).update(mappers=_at_least_two("A chain", mappers), max_downstream_keys=max_downstream_keys)
        self.__post_init__()

    @property
    def parts(self) -> tuple[PartitionMapper, ...]:
        return self.mappers

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
    return tuple(check_mapper(mapper) for mapper in mappers)


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
        vars(self).update(table=_table(table), max_downstream_keys=max_downstream_keys)
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
    return tuple((checked_key(key, "8.3"), _targets(targets)) for key, targets in entries.items())


def _targets(value: object) -> tuple[str, ...]:
    targets = (
        [value]
        if isinstance(value, str)
        else list(cast("Sequence[object]", value))
        if isinstance(value, list | tuple)
        else []
    )
    if not targets:
        raise InvalidPartition(
            f"{value!r} is neither a target key nor a list of them", fix="Give at least one target key.", rule="8.3"
        )
    return tuple(dict.fromkeys(checked_key(target, "8.3") for target in targets))
