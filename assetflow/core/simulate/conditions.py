"""Read the assets and conditions of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

from assetflow.core.condition_tree import Gate, GateKind
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
from assetflow.core.simulation.timetables import read_cron
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.values.conditions import Condition, Leaf, from_postfix
from assetflow.errors import AssetflowError

ASSET_KEYS = ("name", "uri", "group", "extra")
_GATES: dict[str, GateKind] = {"all": "all", "and": "all", "list": "all", "any": "any", "or": "any"}


def read_asset(value: object, where: str) -> Deferred[Asset]:
    """Read an asset: a URI, or an object with name, URI, group and extra."""
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
