"""Partition mappers from JSON, as scenarios and stored deployments have them: the way back from `as_json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from assetflow.core.partitions.base import AllKeysMapper, KeysMapper, LastMapper, PartitionMapper
from assetflow.core.partitions.mappers import (
    AllowedKeyMapper,
    ChainMapper,
    FixedKeyMapper,
    IdentityMapper,
    ProductMapper,
    StaticMapper,
)
from assetflow.core.partitions.rollup import FanOutMapper, RollupMapper, policy_from_json
from assetflow.core.partitions.temporal import TEMPORAL_MAPPERS
from assetflow.core.partitions.time_window import TimeWindowMapper
from assetflow.core.partitions.windows import window_from_json
from assetflow.errors import InvalidPartition

_LIMIT = "max_downstream_keys"

Options = dict[str, Any]


def mapper_from_json(value: object) -> PartitionMapper:
    """Return the mapper of a JSON value: `"day"`, `{"day": {"timezone": "Europe/Berlin"}}`, `{"rollup": {..}}`.

    `max_downstream_keys` is one of the options of a mapper, or is written beside the name of a mapper without options.

    Raises:
        InvalidPartition: the value is not a mapper, or the mapper refuses one of its options.
    """
    kind, options = _kind_and_options(value)
    try:
        return _READERS[kind](options)
    except (TypeError, KeyError) as cause:
        raise InvalidPartition(
            f"The mapper {value!r} cannot be read: {cause}", fix="Check the names of its options.", rule="5.1"
        ) from cause


def _kind_and_options(value: object) -> tuple[str, Options]:
    """Return the name of a mapper and its options; a value in place of the options is the option `""`."""
    entry = {value: cast(object, {})} if isinstance(value, str) else value
    if isinstance(entry, Mapping):
        entries = dict(cast("Mapping[str, object]", entry))
        limit = {_LIMIT: entries.pop(_LIMIT)} if _LIMIT in entries else {}
        kind = next(iter(entries), "")
        if len(entries) == 1 and kind in _READERS and (not isinstance(value, str) or kind in _WITHOUT_OPTIONS):
            given = entries[kind]
            options = dict(cast("Mapping[str, object]", given)) if isinstance(given, Mapping) else {"": given}
            return kind, options | limit
    raise InvalidPartition(
        f"{value!r} is not a partition mapper", fix=f"Write one of {', '.join(_READERS)}, with its options.", rule="5.1"
    )


def _temporal(kind: str) -> Callable[[Options], PartitionMapper]:
    return lambda options: TEMPORAL_MAPPERS[kind](**options)


def _allowed(options: Options) -> PartitionMapper:
    return AllowedKeyMapper(options.pop(""), **options)


def _fixed(options: Options) -> PartitionMapper:
    return FixedKeyMapper(options.pop(""), **options)


def _product(options: Options) -> PartitionMapper:
    return ProductMapper(*_members(options), **options)


def _chain(options: Options) -> PartitionMapper:
    return ChainMapper(*_members(options), **options)


def _members(options: Options) -> list[PartitionMapper]:
    members = options.pop("") if "" in options else options.pop("mappers")
    if not isinstance(members, list):
        raise TypeError("a list of mappers is needed")
    return [mapper_from_json(member) for member in cast("list[object]", members)]


def _rollup(options: Options) -> PartitionMapper:
    upstream, window = mapper_from_json(options.pop("upstream")), window_from_json(options.pop("window"))
    policy = policy_from_json(options.pop("wait", "all"))
    return RollupMapper(upstream_mapper=upstream, window=window, wait_policy=policy, **options)


def _fan_out(options: Options) -> PartitionMapper:
    upstream, window = mapper_from_json(options.pop("upstream")), window_from_json(options.pop("window"))
    downstream = mapper_from_json(options.pop("downstream")) if "downstream" in options else None
    return FanOutMapper(upstream_mapper=upstream, window=window, downstream_mapper=downstream, **options)


def _static(options: Options) -> PartitionMapper:
    limit = options.pop(_LIMIT, None)
    inner = options.get("table")
    table = cast("Options", inner) if len(options) == 1 and isinstance(inner, Mapping) else options
    return StaticMapper(table, max_downstream_keys=limit)


def _last(options: Options) -> PartitionMapper:
    return LastMapper(*_value(options), **options)


def _keys(options: Options) -> PartitionMapper:
    return KeysMapper(*_value(options), **options)


def _value(options: Options) -> list[Any]:
    return [options.pop("")] if "" in options else []


_READERS: dict[str, Callable[[Options], PartitionMapper]] = {
    "identity": lambda options: IdentityMapper(**options),
    **{kind: _temporal(kind) for kind in TEMPORAL_MAPPERS},
    "allowed": _allowed,
    "fixed": _fixed,
    "product": _product,
    "chain": _chain,
    "rollup": _rollup,
    "fanout": _fan_out,
    "time_window": lambda options: TimeWindowMapper(**options),
    "static": _static,
    "all_keys": lambda options: AllKeysMapper(**options),
    "last": _last,
    "keys": _keys,
}
_WITHOUT_OPTIONS = frozenset({"identity", *TEMPORAL_MAPPERS})
