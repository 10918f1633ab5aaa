"""The assets, conditions and mappers of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, cast

from assetflow.core.partitions import IdentityMapper, PartitionMapper, mapper_from_json
from assetflow.core.partitions.time_window import MAPPER_KINDS, PLAIN_KINDS
from assetflow.core.simulate.reading import (
    Deferred,
    Span,
    Whole,
    as_list,
    as_text,
    is_object,
    read,
    refuse,
    short,
    single,
)
from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.values.conditions import Condition, Gate, GateKind, Leaf, from_postfix
from assetflow.core.values.schedules import Partitioning, Schedule, check_mapper_target
from assetflow.errors import AssetflowError


@dataclass(frozen=True, kw_only=True)
class CronForm:
    """A cron: a text, or an object with cron and timezone."""

    cron: str
    timezone: str | None = None
    short = "cron"

    def timetable(self, zone: str = "UTC") -> CronTriggerTimetable:
        """Return the timetable; without a time zone of its own, it is in the one that is given."""
        return CronTriggerTimetable(self.cron, zone if self.timezone is None else self.timezone)

    def build(self) -> Schedule:
        """Return the schedule of its times."""
        return Schedule(timetable=self.timetable())


@dataclass(frozen=True, kw_only=True)
class _AssetForm:
    name: str | None = None
    uri: str | None = None
    group: str = ""
    extra: object = None

    def build(self) -> Asset:
        extra = cast("Mapping[str, object] | None", self.extra)
        return Asset(uri=self.uri, name=self.name, group=self.group, extra=extra)


@dataclass(frozen=True, kw_only=True)
class _RefForm:
    name: str | None = None
    uri: str | None = None


def read_asset(value: object, where: str) -> Deferred[Asset]:
    """Read an asset: a URI, an object with name, URI, group and extra, or, in Python, an `Asset`."""
    if isinstance(value, Asset):
        return lambda: value
    if isinstance(value, str):
        return partial(Asset, value)
    return read(_AssetForm, value, where).build


def _read_outlet(value: object, where: str) -> Deferred[Outlet]:
    if is_object(value) and not value.keys() & {"asset", "ref", "alias"}:
        return read_asset(value, where)
    return cast("Deferred[Outlet]", read_leaf(value, where))


def _read_uri(value: object, where: str) -> str:
    return Asset(as_text(value, where)).uri


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
    return partial(AssetRef, **vars(read(_RefForm, inner, f"{where}, ref")))


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


_GATES: dict[str, GateKind] = {"all": "all", "and": "all", "list": "all", "any": "any", "or": "any"}


@dataclass(frozen=True, kw_only=True)
class _Counted:
    n: Whole
    of: object


@dataclass(frozen=True, kw_only=True)
class _Within:
    seconds: Span
    of: object


@dataclass(frozen=True, kw_only=True)
class _Since(CronForm):
    of: object


def _gate(value: object, where: str) -> tuple[str, Deferred[Gate], list[object]] | None:
    """Read a gate: how it is written, the gate itself, and its members."""
    word, inner = ("list", cast("object", value)) if isinstance(value, list) else single(value)
    place = f"{where}, {word}"
    if word in _GATES:
        members = as_list(inner, place)
        return word, partial(Gate, _GATES[word], len(members)), members
    if word == "at_least":
        counted: _Counted = read(_Counted, inner, place)
        members = as_list(counted.of, place)
        return word, partial(Gate, "at_least", len(members), counted.n), members
    if word == "times":
        counted = read(_Counted, inner, place)
        return word, partial(Gate, "times", 1, counted.n), [counted.of]
    if word == "within":
        within: _Within = read(_Within, inner, place)
        return word, partial(Gate, "within", 1, within.seconds), [within.of]
    if word == "since":
        since: _Since = read(_Since, inner, place)
        return word, lambda: Gate("since", 1, since.timetable()), [since.of]
    return None


def _read_mapper(value: object, where: str) -> Deferred[PartitionMapper]:
    """Read a mapper; one that the format does not have is refused, also inside of another. It checks its options."""
    waiting = [value]
    while waiting:
        mapper = waiting.pop()
        if isinstance(mapper, str) and mapper in PLAIN_KINDS:
            continue
        # The limit may be written beside the name of a mapper without options.
        named = {key: mapper[key] for key in mapper if key != "max_downstream_keys"} if is_object(mapper) else mapper
        word, inner = single(named)
        if word not in MAPPER_KINDS:
            refuse(f"unknown mapper {short(mapper)}", where, f"Known are {', '.join(MAPPER_KINDS)}")
        waiting += _nested_mappers(word, inner)
    return partial(mapper_from_json, value)


def _nested_mappers(word: str, inner: object) -> list[object]:
    if word in ("product", "chain"):
        members = inner.get("mappers") if is_object(inner) else inner
        return list(cast("list[object]", members)) if isinstance(members, list) else []
    if word in ("rollup", "fanout") and is_object(inner):
        return [inner[key] for key in ("upstream", "downstream") if inner.get(key) is not None]
    return []


MapperPair = tuple[Asset | AssetRef, PartitionMapper]


def _read_mapper_pair(value: object, where: str) -> Deferred[MapperPair]:
    """Read the asset or reference that has a mapper of its own, and the mapper; the schedule refuses other targets."""
    entry = as_list(value, where)
    if len(entry) != 2:
        refuse("an entry of mappers is a pair of asset and mapper", where)
    is_asset = is_object(entry[0]) and entry[0].keys() <= vars(_AssetForm()).keys()
    target = (read_asset if is_asset else read_condition)(entry[0], where)
    mapper = _read_mapper(entry[1], where)
    return lambda: (check_mapper_target(target()), mapper())


AnAsset = Annotated[Deferred[Asset], read_asset]
AnOutlet = Annotated[Deferred[Outlet], _read_outlet]
ALeaf = Annotated[Deferred[Leaf], read_leaf]
ACondition = Annotated[Deferred[Condition], read_condition]
AMapperPair = Annotated[Deferred[MapperPair], _read_mapper_pair]
Uri = Annotated[str, _read_uri]


@dataclass(frozen=True, kw_only=True)
class PartitioningForm:
    """Which mapper the assets of a schedule have: the default one, and those of single assets."""

    default_mapper: Annotated[Deferred[PartitionMapper], _read_mapper] = IdentityMapper
    mappers: tuple[AMapperPair, ...] = ()

    def partitioning(self) -> Partitioning:
        """Return the mappers of the schedule."""
        return Partitioning(self.default_mapper(), tuple(pair() for pair in self.mappers))


@dataclass(frozen=True, kw_only=True)
class PartitionedForm(PartitioningForm):
    """A partitioned schedule."""

    assets: ACondition

    def build(self) -> Schedule:
        """Return the schedule."""
        return Schedule(condition=self.assets(), partitioning=self.partitioning())
