"""Assets, conditions, schedules and consumers as a scenario writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

from assetflow.core.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.conditions import Condition, Gate, GateKind, Leaf, from_postfix
from assetflow.core.partitions import mapper_from_json
from assetflow.core.schedules import ConsumerOptions, Partitioning, Schedule, WhilePaused
from assetflow.core.simulation.mappers import check_form
from assetflow.core.simulation.reading import (
    Deferred,
    as_bool,
    as_choice,
    as_list,
    as_object,
    as_text,
    is_object,
    refuse,
    short,
    single,
)
from assetflow.core.timetables import (
    DEFAULT_KEY_FORMAT,
    CronPartitionTimetable,
    CronTriggerTimetable,
    PartitionedAtRuntime,
    Timetable,
)
from assetflow.errors import AssetflowError

_ASSET_KEYS = ("name", "uri", "group", "extra")
_GATES: dict[str, GateKind] = {"all": "all", "and": "all", "list": "all", "any": "any", "or": "any"}


@dataclass(frozen=True)
class ConsumerSpec:
    """A consumer of a scenario: its options, and whether it is paused if it is new."""

    options: Deferred[ConsumerOptions]
    paused: bool = False


def read_asset(value: object, where: str) -> Deferred[Asset]:
    """ASSET: a URI, or an object with name, URI, group and extra."""
    if isinstance(value, str):
        return partial(Asset, value)
    data = as_object(value, where, _ASSET_KEYS)
    given = {key: as_text(data[key], f"{where}, {key}") for key in ("name", "uri", "group") if key in data}
    extra = cast("Mapping[str, object] | None", data.get("extra"))
    return lambda: Asset(uri=given.get("uri"), name=given.get("name"), group=given.get("group", ""), extra=extra)


def read_outlet(value: object, where: str) -> Deferred[Outlet]:
    """An outlet of a task: an asset, a reference or an alias."""
    if is_object(value) and not value.keys() & {"asset", "ref", "alias"}:
        return read_asset(value, where)
    return cast("Deferred[Outlet]", read_leaf(value, where))


def read_leaf(value: object, where: str) -> Deferred[Leaf]:
    """A leaf of a condition; anything else is an unknown expression."""
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
    """EXPR: leaves and gates, nested as deep as one likes."""
    nodes: list[Gate | Deferred[Leaf]] = []
    waiting: list[tuple[object, tuple[str, ...]]] = [(value, ())]
    while waiting:
        node, path = waiting.pop()
        place = ", ".join((where, *path))
        gate = _gate(node, place)
        if gate is None:
            nodes.append(partial(_build_leaf, read_leaf(node, place), ", ".join(path)))
            continue
        word, kind, members = gate
        nodes.append(Gate(kind, len(members)))
        waiting.extend((member, (*path, f"{word}[{number}]")) for number, member in enumerate(members))
    nodes.reverse()
    return lambda: from_postfix(node if isinstance(node, Gate) else node() for node in nodes)


def _build_leaf(leaf: Deferred[Leaf], path: str) -> Leaf:
    try:
        return leaf()
    except AssetflowError as error:
        raise (error.at(path) if path else error) from error


def _gate(value: object, where: str) -> tuple[str, GateKind, list[object]] | None:
    if isinstance(value, list):
        return "list", "all", cast("list[object]", value)
    word, members = single(value)
    if word not in _GATES:
        return None
    return word, _GATES[word], as_list(members, f"{where}, {word}")


def read_schedule(value: object, where: str) -> Deferred[Schedule]:
    """SCHEDULE: a condition, a time table, both, a partitioned condition, or nothing."""
    if value is None:
        return Schedule
    kind, inner = single(value)
    place = f"{where}, {kind}"
    if kind == "asset_or_time":
        return _asset_or_time(inner, place)
    if kind == "partitioned":
        return _partitioned(inner, place)
    if kind == "cron":
        return _timed(_cron(inner, place))
    if kind == "cron_partition":
        return _timed(_cron_partition(inner, place))
    if kind == "partitioned_at_runtime":
        as_bool(inner, place)
        return _timed(PartitionedAtRuntime)
    condition = read_condition(value, where)
    return lambda: Schedule(condition=condition())


def read_consumer(value: object, where: str) -> ConsumerSpec:
    """CONSUMER: a schedule, or a schedule with options."""
    if not (is_object(value) and "schedule" in value):
        schedule = read_schedule(value, where)
        return ConsumerSpec(lambda: ConsumerOptions(schedule()))
    data = as_object(value, where, ("schedule", "paused", "while_paused", "coalesce"))
    schedule = read_schedule(data["schedule"], where)
    while_paused = cast(
        "WhilePaused", as_choice(data.get("while_paused", "drop"), ("drop", "keep"), f"{where}, while_paused")
    )
    coalesce = as_bool(data.get("coalesce", False), f"{where}, coalesce")
    paused = as_bool(data.get("paused", False), f"{where}, paused")
    return ConsumerSpec(lambda: ConsumerOptions(schedule(), while_paused, coalesce), paused)


def _timed(timetable: Deferred[Timetable]) -> Deferred[Schedule]:
    return lambda: Schedule(timetable=timetable())


def _asset_or_time(value: object, where: str) -> Deferred[Schedule]:
    data = as_object(value, where, ("cron", "timezone", "assets"))
    _need(data, ("cron", "assets"), where)
    # The time zone stands beside the cron, or with it in an object.
    together: Mapping[str, object] = {key: data[key] for key in data if key != "assets"}
    timetable = _cron(data["cron"] if is_object(data["cron"]) else together, where)
    assets = read_condition(data["assets"], where)
    return lambda: Schedule(condition=assets(), timetable=timetable())


def _cron(value: object, where: str) -> Deferred[Timetable]:
    data = as_object({"cron": value} if isinstance(value, str) else value, where, ("cron", "timezone"))
    _need(data, ("cron",), where)
    return partial(
        CronTriggerTimetable, as_text(data["cron"], where), as_text(data.get("timezone", "UTC"), f"{where}, timezone")
    )


def _cron_partition(value: object, where: str) -> Deferred[Timetable]:
    data = as_object(
        {"cron": value} if isinstance(value, str) else value, where, ("cron", "timezone", "run_offset", "key_format")
    )
    _need(data, ("cron",), where)
    return partial(
        CronPartitionTimetable,
        as_text(data["cron"], where),
        as_text(data.get("timezone", "UTC"), f"{where}, timezone"),
        cast("int", data.get("run_offset", 0)),
        as_text(data.get("key_format", DEFAULT_KEY_FORMAT), f"{where}, key_format"),
    )


def _partitioned(value: object, where: str) -> Deferred[Schedule]:
    data = as_object(value, where, ("assets", "default_mapper", "mappers"))
    _need(data, ("assets",), where)
    assets = read_condition(data["assets"], where)
    default = data.get("default_mapper", "identity")
    check_form(default, f"{where}, default_mapper")
    pairs: list[tuple[Deferred[Outlet], object]] = []
    for number, pair in enumerate(as_list(data.get("mappers", []), f"{where}, mappers")):
        place = f"{where}, mappers[{number}]"
        entry = as_list(pair, place)
        if len(entry) != 2:
            refuse("an entry of mappers is a pair of asset and mapper", place)
        check_form(entry[1], place)
        pairs.append((_mapper_target(entry[0], place), entry[1]))

    def build() -> Schedule:
        condition = assets()
        mappers = tuple((cast("Asset | AssetRef", target()), mapper_from_json(mapper)) for target, mapper in pairs)
        return Schedule(condition=condition, partitioning=Partitioning(mapper_from_json(default), mappers))

    return build


def _mapper_target(value: object, where: str) -> Deferred[Outlet]:
    if is_object(value) and "alias" in value:
        refuse("a mapper belongs to an asset or a reference, not to an alias", where)
    return read_outlet(value, where)


def _need(data: Mapping[str, object], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        if key not in data:
            refuse(f"{key!r} is missing", where)
