"""Read the assets and conditions of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from assetflow.core.partitions import mapper_from_json
from assetflow.core.simulate.reading import (
    Deferred,
    as_count,
    as_exactly,
    as_list,
    as_object,
    as_span,
    as_text,
    is_object,
    need,
    refuse,
    short,
    single,
)
from assetflow.core.time.timetables import DEFAULT_KEY_FORMAT, CronPartitionTimetable, CronTriggerTimetable, Timetable
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.values.conditions import Condition, Gate, GateKind, Leaf, from_postfix
from assetflow.core.values.schedules import Partitioning, Schedule, check_mapper_target
from assetflow.errors import AssetflowError


def read_cron(value: object, where: str) -> Deferred[Timetable]:
    """Read a cron: a text in UTC, or an object with cron and timezone."""
    data = as_object({"cron": value} if isinstance(value, str) else value, where, ("cron", "timezone"))
    need(data, ("cron",), where)
    return partial(
        CronTriggerTimetable, as_text(data["cron"], where), as_text(data.get("timezone", "UTC"), f"{where}, timezone")
    )


def read_cron_partition(value: object, where: str) -> Deferred[Timetable]:
    """Read a cron whose runs have a partition key."""
    data = as_object(
        {"cron": value} if isinstance(value, str) else value, where, ("cron", "timezone", "run_offset", "key_format")
    )
    need(data, ("cron",), where)
    return partial(
        CronPartitionTimetable,
        as_text(data["cron"], where),
        as_text(data.get("timezone", "UTC"), f"{where}, timezone"),
        cast("int", data.get("run_offset", 0)),
        as_text(data.get("key_format", DEFAULT_KEY_FORMAT), f"{where}, key_format"),
    )


def read_cron_in_zone(value: object, where: str) -> Callable[[str], Timetable]:
    """Return what makes a cron's timetable: its own time zone counts, or else the one that is given then."""
    data = as_object({"cron": value} if isinstance(value, str) else value, where, ("cron", "timezone"))
    read_cron(dict(data), where)
    return lambda zone: read_cron({"timezone": zone, **data}, where)()


ASSET_KEYS = ("name", "uri", "group", "extra")
_GATES: dict[str, GateKind] = {"all": "all", "and": "all", "list": "all", "any": "any", "or": "any"}


def read_asset(value: object, where: str) -> Deferred[Asset]:
    """Read an asset: a URI, an object with name, URI, group and extra, or, in Python, an `Asset`."""
    if isinstance(value, Asset):
        return lambda: value
    if isinstance(value, str):
        return partial(Asset, value)
    data = as_object(value, where, ASSET_KEYS)
    given = {key: as_text(data[key], f"{where}, {key}") for key in ("name", "uri", "group") if key in data}
    extra = cast("Mapping[str, object] | None", data.get("extra"))
    return lambda: Asset(uri=given.get("uri"), name=given.get("name"), group=given.get("group", ""), extra=extra)


def read_outlet(value: object, where: str) -> Deferred[Outlet]:
    """Read an outlet of a task: an asset, a reference or an alias."""
    if is_object(value) and not value.keys() & {"asset", "ref", "alias"}:
        return read_asset(value, where)
    return cast("Deferred[Outlet]", read_leaf(value, where))


def read_leaf(value: object, where: str) -> Deferred[Leaf]:
    """Read a leaf of a condition: an asset, a reference or an alias."""
    if isinstance(value, str):
        return partial(Asset, value)
    kind, inner = single(value)
    if kind == "asset":
        return read_asset(inner, where)
    if kind == "alias":
        return partial(AssetAlias, as_text(inner, f"{where}, alias"))
    if kind != "ref":
        refuse(f"unknown expression {short(value)}", where, 'Write a URI, an "asset", a "ref", an "alias", or a gate')
    data = as_object(inner, f"{where}, ref", ("name", "uri"))
    given = {key: as_text(text, f"{where}, ref") for key, text in data.items()}
    return lambda: AssetRef(**given)


def read_condition(value: object, where: str) -> Deferred[Condition]:
    """Read a condition: leaves and gates, nested to any depth."""
    nodes: list[Deferred[Gate | Leaf]] = []
    waiting: list[tuple[object, tuple[str, ...]]] = [(value, ())]
    while waiting:
        node, path = waiting.pop()
        place = ", ".join((where, *path))
        gate = _gate(node, place)
        if gate is None:
            nodes.append(partial(_build_leaf, read_leaf(node, place), ", ".join(path)))
            continue
        word, build, members = gate
        nodes.append(build)
        waiting.extend((member, (*path, f"{word}[{number}]")) for number, member in enumerate(members))
    nodes.reverse()
    return lambda: from_postfix(node() for node in nodes)


def _build_leaf(leaf: Deferred[Leaf], path: str) -> Leaf:
    try:
        return leaf()
    except AssetflowError as error:
        raise (error.at(path) if path else error) from error


def _gate(value: object, where: str) -> tuple[str, Deferred[Gate], list[object]] | None:
    """Read a gate: how it is written, the gate itself, and its members."""
    word, inner = ("list", cast("object", value)) if isinstance(value, list) else single(value)
    place = f"{where}, {word}"
    if word in _GATES:
        members = as_list(inner, place)
        return word, partial(Gate, _GATES[word], len(members)), members
    if word == "at_least":
        data = as_exactly(inner, ("n", "of"), place)
        members = as_list(data["of"], place)
        return word, partial(Gate, "at_least", len(members), as_count(data["n"])), members
    if word == "times":
        data = as_exactly(inner, ("n", "of"), place)
        return word, partial(Gate, "times", 1, as_count(data["n"])), [data["of"]]
    if word == "within":
        data = as_exactly(inner, ("seconds", "of"), place)
        return word, partial(Gate, "within", 1, as_span(data["seconds"])), [data["of"]]
    if word == "since":
        data = as_object(inner, place, ("cron", "timezone", "of"))
        need(data, ("cron", "of"), place)
        timetable = read_cron({key: data[key] for key in data if key != "of"}, place)
        return word, lambda: Gate("since", 1, timetable()), [data["of"]]
    return None


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
