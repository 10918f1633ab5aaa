"""Read the assets, conditions, schedules, mappers and consumers of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import cast

from assetflow.core.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.conditions import Condition, Gate, GateKind, Leaf, from_postfix
from assetflow.core.partitions import mapper_from_json
from assetflow.core.schedules import ConsumerOptions, Partitioning, Schedule, WhilePaused, check_mapper_target
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
from assetflow.core.time.timetables import (
    DEFAULT_KEY_FORMAT,
    CronPartitionTimetable,
    CronTriggerTimetable,
    PartitionedAtRuntime,
    Timetable,
)
from assetflow.core.timing import Deadline, Intake, OnDeadline, Opening, make_deadline
from assetflow.errors import AssetflowError

_ASSET_KEYS = ("name", "uri", "group", "extra")
_PLAIN_MAPPERS = ("identity", "hour", "day", "week", "month", "quarter", "year")
_MAPPERS = (*_PLAIN_MAPPERS, "allowed", "fixed", "product", "chain", "rollup", "fanout")
_GATES: dict[str, GateKind] = {"all": "all", "and": "all", "list": "all", "any": "any", "or": "any"}
_SPANS = ("debounce", "max_wait", "cooldown")
_COUNTS = ("min_events", "max_events")
_OPTIONS = ("schedule", "paused", "while_paused", "coalesce", *_SPANS, *_COUNTS, "deadline", "on_deadline")
_TIMED = {"at_least", "times", "within", "since", "asset_and_time", *_SPANS, *_COUNTS, "deadline", "on_deadline"}
_LEAVES = {"asset", "ref", "alias"}


@dataclass(frozen=True)
class ConsumerSpec:
    """A consumer of a scenario.

    Attributes:
        paused: whether it is paused if it is new.
        is_timed: whether it is written with anything of chapter 9.
    """

    options: Deferred[ConsumerOptions]
    paused: bool = False
    is_timed: bool = False


def read_asset(value: object, where: str) -> Deferred[Asset]:
    """Read an asset: a URI, or an object with name, URI, group and extra."""
    if isinstance(value, str):
        return partial(Asset, value)
    data = as_object(value, where, _ASSET_KEYS)
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
        data = _needed(inner, ("n", "of"), place)
        members = as_list(data["of"], place)
        return word, partial(Gate, "at_least", len(members), _whole(data["n"])), members
    if word == "times":
        data = _needed(inner, ("n", "of"), place)
        return word, partial(Gate, "times", 1, _whole(data["n"])), [data["of"]]
    if word == "within":
        data = _needed(inner, ("seconds", "of"), place)
        return word, partial(Gate, "within", 1, _span(data["seconds"])), [data["of"]]
    if word == "since":
        data = as_object(inner, place, ("cron", "timezone", "of"))
        _need(data, ("cron", "of"), place)
        timetable = _cron({key: data[key] for key in data if key != "of"}, place)
        return word, lambda: Gate("since", 1, timetable()), [data["of"]]
    return None


def _span(value: object) -> timedelta:
    """Return seconds as a span; whatever else it is, the consumer that it is given for refuses."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    return cast("timedelta", value)


def _whole(value: object) -> int:
    """Return a number; whether it is a whole one, and large enough, the consumer says that it is given for."""
    return cast("int", value)


def _needed(value: object, keys: tuple[str, ...], where: str) -> Mapping[str, object]:
    """Return an object with exactly these keys."""
    data = as_object(value, where, keys)
    _need(data, keys, where)
    return data


def _uses_time(value: object) -> bool:
    """Return True if a consumer is written with anything of chapter 9."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(cast("list[object]", node))
        elif is_object(node) and not node.keys() & _LEAVES:
            if node.keys() & _TIMED:
                return True
            waiting.extend(node.values())
    return False


def read_schedule(value: object, where: str) -> Deferred[Schedule]:
    """Read a schedule: a condition, a timetable, both, a partitioned condition, or nothing."""
    if value is None:
        return Schedule
    kind, inner = single(value)
    place = f"{where}, {kind}"
    if kind == "asset_or_time":
        return _asset_or_time(inner, place)
    if kind == "asset_and_time":
        return _asset_and_time(inner, place)
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
    """Read a consumer: a schedule, or an object with a schedule and options."""
    if not (is_object(value) and "schedule" in value):
        schedule = read_schedule(value, where)
        return ConsumerSpec(lambda: ConsumerOptions(schedule()), is_timed=_uses_time(value))
    data = as_object(value, where, _OPTIONS)
    schedule = read_schedule(data["schedule"], where)
    while_paused = cast(
        "WhilePaused", as_choice(data.get("while_paused", "drop"), ("drop", "keep"), f"{where}, while_paused")
    )
    coalesce = as_bool(data.get("coalesce", False), f"{where}, coalesce")
    paused = as_bool(data.get("paused", False), f"{where}, paused")
    intake = _intake(data)
    deadline = _deadline(data, where)

    def options() -> ConsumerOptions:
        built = schedule()
        return ConsumerOptions(built, while_paused, coalesce, intake(), deadline(built))

    return ConsumerSpec(options, paused, _uses_time(value))


def _intake(data: Mapping[str, object]) -> Deferred[Intake]:
    def span(name: str) -> timedelta | None:
        return None if data.get(name) is None else _span(data[name])

    def count(name: str) -> int | None:
        return None if data.get(name) is None else _whole(data[name])

    return lambda: Intake(
        span("debounce"), span("max_wait"), count("min_events"), count("max_events"), span("cooldown")
    )


def _deadline(data: Mapping[str, object], where: str) -> Callable[[Schedule], Deadline | None]:
    """Return what makes the deadline of a schedule; a cron without a time zone has that of the opening hours."""
    value, place = data.get("deadline"), f"{where}, deadline"
    then = cast("OnDeadline", as_text(data.get("on_deadline") or "alert", f"{where}, on_deadline"))
    if value is None:
        return lambda _: make_deadline(None, then)
    if isinstance(value, str) or is_object(value):
        cron = _cron_in_zone(value, place)
        return lambda schedule: make_deadline(cron(_zone_of(schedule)), then)
    span = _span(value)
    return lambda _: make_deadline(span, then)


def _zone_of(schedule: Schedule) -> str:
    return "UTC" if schedule.opening is None else schedule.opening.timezone


def _asset_and_time(value: object, where: str) -> Deferred[Schedule]:
    data = as_object(value, where, ("cron", "timezone", "until", "assets"))
    _need(data, ("cron", "assets"), where)
    timetable = _cron({key: data[key] for key in ("cron", "timezone") if key in data}, where)
    until = None if data.get("until") is None else _cron_in_zone(data["until"], f"{where}, until")
    kind, inner = single(data["assets"])
    assets = _partitioned(inner, where) if kind == "partitioned" else _of_assets(data["assets"], where)

    def build() -> Schedule:
        opens = timetable()
        assert isinstance(opens, CronTriggerTimetable)
        return replace(assets(), opening=Opening(opens, until and until(opens.timezone)))

    return build


def _of_assets(value: object, where: str) -> Deferred[Schedule]:
    condition = read_condition(value, where)
    return lambda: Schedule(condition=condition())


def _cron_in_zone(value: object, where: str) -> Callable[[str], Timetable]:
    """Return what makes a cron's timetable: its own time zone counts, or else the one that is given then."""
    data = as_object({"cron": value} if isinstance(value, str) else value, where, ("cron", "timezone"))
    _cron(dict(data), where)
    return lambda zone: _cron({"timezone": zone, **data}, where)()


def _timed(timetable: Deferred[Timetable]) -> Deferred[Schedule]:
    return lambda: Schedule(timetable=timetable())


def _asset_or_time(value: object, where: str) -> Deferred[Schedule]:
    data = as_object(value, where, ("cron", "timezone", "assets"))
    _need(data, ("cron", "assets"), where)
    # The time zone is written beside the cron, or in one object with it.
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
    _check_mapper_form(default, f"{where}, default_mapper")
    pairs: list[tuple[Deferred[Condition], object]] = []
    for number, pair in enumerate(as_list(data.get("mappers", []), f"{where}, mappers")):
        place = f"{where}, mappers[{number}]"
        entry = as_list(pair, place)
        if len(entry) != 2:
            refuse("an entry of mappers is a pair of asset and mapper", place)
        _check_mapper_form(entry[1], place)
        pairs.append((_mapper_target(entry[0], place), entry[1]))

    def build() -> Schedule:
        condition = assets()
        mappers = tuple((check_mapper_target(target()), mapper_from_json(mapper)) for target, mapper in pairs)
        return Schedule(condition=condition, partitioning=Partitioning(mapper_from_json(default), mappers))

    return build


def _check_mapper_form(value: object, where: str) -> None:
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
    if is_object(value) and value.keys() <= set(_ASSET_KEYS):
        return read_asset(value, where)
    return read_condition(value, where)


def _need(data: Mapping[str, object], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        if key not in data:
            refuse(f"{key!r} is missing", where)
