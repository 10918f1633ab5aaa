"""What a flow declares, as one flat JSON text in its parameter schema: schedule, options, outlets and inlets.

The nodes of the condition stand in postfix order, so that the text is as flat for a deep condition as for a wide one
(nested JSON beyond about 120 levels makes Prefect lose the schema without a word).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from assetflow.core.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.conditions import Gate, Leaf, from_postfix
from assetflow.core.partitions import mapper_from_json
from assetflow.core.schedules import ConsumerOptions, Partitioning, Schedule, WhilePaused
from assetflow.core.timetables import timetable_from_json
from assetflow.errors import AssetflowError, InvalidSchedule

VERSION = 1
# Measured on Prefect 3.8 with SQLite: 5 MB are deployed and shown in seconds, 20 MB make the server time out.
LARGEST_TEXT = 5_000_000

Json = Mapping[str, object]


@dataclass(frozen=True)
class FlowDeclaration:
    """All that a flow says about assets: how it is scheduled, what its tasks update and read."""

    options: ConsumerOptions = field(default_factory=ConsumerOptions)
    produces: tuple[Outlet, ...] = ()
    reads: tuple[Outlet, ...] = ()


def declaration_to_text(declaration: FlowDeclaration) -> str:
    """The text that is stored with a deployment.

    Raises:
        InvalidSchedule: it is too large for one.
    """
    schedule = declaration.options.schedule
    data: dict[str, object] = {"version": VERSION}
    if schedule.condition is not None:
        data["nodes"] = [node_to_json(node) for node in schedule.condition.postfix]
    if schedule.partitioning is not None:
        data["partitioning"] = _partitioning_to_json(schedule.partitioning)
    if schedule.timetable is not None:
        data["timetable"] = schedule.timetable.as_json()
    if declaration.options.while_paused != "drop":
        data["while_paused"] = declaration.options.while_paused
    if declaration.options.coalesce:
        data["coalesce"] = True
    for name, outlets in (("produces", declaration.produces), ("reads", declaration.reads)):
        if outlets:
            data[name] = [node_to_json(outlet) for outlet in outlets]
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    if len(text) > LARGEST_TEXT:
        raise InvalidSchedule(
            f"the schedule and its assets take {len(text):,} characters, more than the {LARGEST_TEXT:,} that Prefect "
            "keeps with a deployment",
            fix="Schedule the flow on fewer assets, or on an alias that stands for them",
        )
    return text


def declaration_from_text(text: str, *, where: str = "") -> FlowDeclaration:
    """The declaration that was stored.

    Raises:
        InvalidSchedule: the text is damaged, or of a later version of assetflow.
    """
    try:
        data = cast(object, json.loads(text))
        if not isinstance(data, dict):
            raise InvalidSchedule("a stored schedule is no JSON object")
        return _declaration_from_json(cast(Json, data))
    except AssetflowError as error:
        raise InvalidSchedule(error.message, where=where, fix=error.fix, rule=error.rule) from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidSchedule(f"a stored schedule is damaged: {error!r}", where=where, fix="Deploy it again") from error


def _declaration_from_json(data: Json) -> FlowDeclaration:
    if data.get("version") != VERSION:
        raise InvalidSchedule(
            f"a stored schedule has version {data.get('version')!r}, this assetflow reads version {VERSION}",
            fix="Update assetflow, or deploy again with this version",
        )
    nodes = data.get("nodes")
    partitioning = data.get("partitioning")
    timetable = data.get("timetable")
    schedule = Schedule(
        condition=None if nodes is None else from_postfix(map(node_from_json, cast(Sequence[object], nodes))),
        partitioning=None if partitioning is None else _partitioning_from_json(cast(Json, partitioning)),
        timetable=None if timetable is None else timetable_from_json(cast("dict[str, object]", timetable)),
    )
    return FlowDeclaration(
        ConsumerOptions(
            schedule, cast(WhilePaused, data.get("while_paused", "drop")), bool(data.get("coalesce", False))
        ),
        produces=outlets_from_json(cast(Sequence[object], data.get("produces", ()))),
        reads=outlets_from_json(cast(Sequence[object], data.get("reads", ()))),
    )


def node_to_json(node: Leaf | Gate) -> object:
    """A leaf as an object, a gate as `["all", 2]`."""
    if isinstance(node, Gate):
        return [node.kind, node.arity]
    if isinstance(node, AssetAlias):
        return {"alias": node.name, **({"group": node.group} if node.group else {})}
    if isinstance(node, AssetRef):
        return {"ref": {node.token.kind: node.token.value}}
    asset = cast(Asset, node)
    return {
        "asset": asset.uri,
        **({"name": asset.name} if asset.name != asset.uri else {}),
        **({"group": asset.group} if asset.group else {}),
        **({"extra": dict(asset.extra)} if asset.extra else {}),
    }


def node_from_json(data: object) -> Leaf | Gate:
    """The leaf or gate that was written.

    Raises:
        InvalidSchedule: it is neither.
    """
    if isinstance(data, list):
        kind, arity = cast("list[object]", data)
        if kind in ("all", "any") and isinstance(arity, int):
            return Gate(kind, arity)
    elif isinstance(data, Mapping):
        node = cast("Mapping[str, object]", data)
        if "asset" in node:
            return Asset(
                uri=cast(str, node["asset"]),
                name=cast("str | None", node.get("name")),
                group=cast(str, node.get("group", "")),
                extra=cast("Mapping[str, object] | None", node.get("extra")),
            )
        if "alias" in node:
            return AssetAlias(cast(str, node["alias"]), group=cast(str, node.get("group", "")))
        if "ref" in node:
            return AssetRef(**cast("dict[str, str]", node["ref"]))
    raise InvalidSchedule(f"a stored condition has an unknown part {data!r}", fix="Update assetflow")


def outlets_from_json(data: Iterable[object]) -> tuple[Outlet, ...]:
    """The assets, references and aliases of a list of leaves."""
    return tuple(node for node in map(node_from_json, data) if isinstance(node, Asset | AssetRef | AssetAlias))


def _partitioning_to_json(partitioning: Partitioning) -> dict[str, object]:
    return {
        "default": partitioning.default.as_json(),
        "mappers": [[node_to_json(target), mapper.as_json()] for target, mapper in partitioning.mappers],
    }


def _partitioning_from_json(data: Json) -> Partitioning:
    pairs: list[tuple[Asset | AssetRef, object]] = []
    for target, mapper in cast("Sequence[Sequence[object]]", data.get("mappers", ())):
        node = node_from_json(target)
        if not isinstance(node, Asset | AssetRef):
            raise InvalidSchedule(f"a mapper belongs to an asset or a reference, not to {node!r}")
        pairs.append((node, mapper))
    return Partitioning(
        mapper_from_json(data["default"]), tuple((node, mapper_from_json(mapper)) for node, mapper in pairs)
    )
