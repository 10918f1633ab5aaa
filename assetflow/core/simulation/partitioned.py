"""Read the partitioned schedules of a scenario, with their mappers."""

from __future__ import annotations

from typing import cast

from assetflow.core.partitions import mapper_from_json
from assetflow.core.simulate.conditions import ASSET_KEYS, read_asset, read_condition
from assetflow.core.simulate.reading import Deferred, as_list, as_object, is_object, need, refuse, short, single
from assetflow.core.values.conditions import Condition
from assetflow.core.values.schedules import Partitioning, Schedule, check_mapper_target

_PLAIN_MAPPERS = ("identity", "hour", "day", "week", "month", "quarter", "year")
_BY_READING = ("time_window", "static", "all_keys", "last", "keys")
_MAPPERS = (*_PLAIN_MAPPERS, "allowed", "fixed", "product", "chain", "rollup", "fanout", *_BY_READING)

MapperPairs = list[tuple[Deferred[Condition], object]]


def read_partitioned(value: object, where: str) -> Deferred[Schedule]:
    """Read a partitioned schedule: its assets, the default mapper, and the mappers of single assets."""
    data = as_object(value, where, ("assets", "default_mapper", "mappers"))
    need(data, ("assets",), where)
    assets = read_condition(data["assets"], where)
    default = data.get("default_mapper", "identity")
    check_mapper_form(default, f"{where}, default_mapper")
    pairs = read_mappers(data.get("mappers", []), where)

    def build() -> Schedule:
        condition = assets()
        mappers = tuple((check_mapper_target(target()), mapper_from_json(mapper)) for target, mapper in pairs)
        return Schedule(condition=condition, partitioning=Partitioning(mapper_from_json(default), mappers))

    return build


def read_mappers(value: object, where: str) -> MapperPairs:
    """Read the assets or references that have mappers of their own, each with its mapper."""
    pairs: MapperPairs = []
    for number, pair in enumerate(as_list(value, f"{where}, mappers")):
        place = f"{where}, mappers[{number}]"
        entry = as_list(pair, place)
        if len(entry) != 2:
            refuse("an entry of mappers is a pair of asset and mapper", place)
        check_mapper_form(entry[1], place)
        pairs.append((_mapper_target(entry[0], place), entry[1]))
    return pairs


def check_mapper_form(value: object, where: str) -> None:
    """Refuse a mapper, or one nested in it, that the format does not have. The mapper itself checks its options."""
    waiting = [value]
    while waiting:
        mapper = waiting.pop()
        if isinstance(mapper, str) and mapper in _PLAIN_MAPPERS:
            continue
        # The limit may be written beside the name of a mapper without options.
        named = {key: mapper[key] for key in mapper if key != "max_downstream_keys"} if is_object(mapper) else mapper
        word, inner = single(named)
        if word not in _MAPPERS:
            refuse(f"unknown mapper {short(mapper)}", where, f"Known are {', '.join(_MAPPERS)}")
        waiting += _nested_mappers(word, inner)


def _nested_mappers(word: str, inner: object) -> list[object]:
    if word in ("product", "chain"):
        members = inner.get("mappers") if is_object(inner) else inner
        return list(cast("list[object]", members)) if isinstance(members, list) else []
    if word in ("rollup", "fanout") and is_object(inner):
        return [inner[key] for key in ("upstream", "downstream") if inner.get(key) is not None]
    return []


def _mapper_target(value: object, where: str) -> Deferred[Condition]:
    """Read the condition that a mapper is given for. The schedule refuses it if it is not one asset or reference."""
    if is_object(value) and value.keys() <= set(ASSET_KEYS):
        return read_asset(value, where)
    return read_condition(value, where)
