"""The nodes of a condition as JSON: leaves as objects, gates as short lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from assetflow.core.time.timetables import Timetable, timetable_from_json
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.values.conditions import Gate, GateArgument, GateKind, Leaf
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.uri import check_name
from assetflow.core.values.watchers import watcher_from_json
from assetflow.errors import InvalidSchedule

Json = Mapping[str, Any]


def policy_to_json(policy: FreshnessPolicy) -> dict[str, object]:
    """Return a policy."""
    warn_after = policy.warn_after
    return {
        "maximum_lag": policy.maximum_lag.total_seconds(),
        "deadline": policy.deadline,
        "timezone": policy.timezone,
        "warn_after": None if warn_after is None else warn_after.total_seconds(),
        "inputs": None if policy.inputs is None else [list(each.token) for each in policy.inputs],
    }


def policy_from_json(data: Json) -> FreshnessPolicy:
    """Return what `policy_to_json` wrote; its inputs are references."""
    warn_after, inputs = data["warn_after"], data["inputs"]
    return FreshnessPolicy(
        timedelta(seconds=data["maximum_lag"]),
        deadline=data["deadline"],
        timezone=data["timezone"],
        warn_after=None if warn_after is None else timedelta(seconds=warn_after),
        inputs=None if inputs is None else [_reference(token) for token in inputs],
    )


def _reference(token: Sequence[str]) -> AssetRef:
    kind, value = token
    return AssetRef(**{kind: value})


def node_to_json(node: Leaf | Gate) -> object:
    """Return a leaf as an object, a gate as `["all", 2]` or `["within", 1, 21600]`."""
    if isinstance(node, Gate):
        argument = gate_argument_to_json(node.argument)
        return [node.kind, node.arity] if argument is None else [node.kind, node.arity, argument]
    if isinstance(node, AssetAlias):
        return {"alias": node.name, **({"group": node.group} if node.group else {})}
    if isinstance(node, AssetRef):
        return {"ref": {node.token.kind: node.token.value}}
    asset = cast(Asset, node)
    return {
        "asset": asset.uri,
        **({"name": asset.name} if asset.name != asset.uri else {}),
        **({"names": list(asset.other_names)} if asset.other_names else {}),
        **({"group": asset.group} if asset.group else {}),
        **({"extra": dict(asset.extra)} if asset.extra else {}),
        **({"watchers": [each.as_json() for each in asset.watchers]} if asset.watchers else {}),
        **({"freshness": policy_to_json(asset.freshness)} if asset.freshness is not None else {}),
    }


def node_from_json(data: object) -> Leaf | Gate:
    """The leaf or gate that was written.

    Raises:
        InvalidSchedule: it is neither.
    """
    if isinstance(data, list):
        return _gate_from_json(cast("list[object]", data))
    if isinstance(data, Mapping):
        node = cast("Mapping[str, object]", data)
        if "asset" in node:
            asset = Asset(uri=cast(str, node["asset"]), name=cast("str | None", node.get("name")))
            # What stands in JSON is JSON: an extra that this version would refuse must not make a schedule unreadable.
            extra = dict(cast("Mapping[str, object]", node.get("extra", {})))
            watchers = tuple(map(watcher_from_json, cast("list[object]", node.get("watchers", []))))
            policy = cast("Mapping[str, object] | None", node.get("freshness"))
            freshness = None if policy is None else policy_from_json(policy)
            names = tuple(map(check_name, cast("list[str]", node.get("names", []))))
            group = cast(str, node.get("group", ""))
            known = (asset.uri, asset.name, group, extra, watchers, freshness)
            return Asset.known(*known, other_names=names)
        if "alias" in node:
            return AssetAlias(cast(str, node["alias"]), group=cast(str, node.get("group", "")))
        if "ref" in node:
            return AssetRef(**cast("dict[str, str]", node["ref"]))
    raise InvalidSchedule(f"a stored condition has an unknown part {data!r}", fix="Update assetflow")


def outlets_from_json(data: Iterable[object]) -> tuple[Outlet, ...]:
    """The assets, references and aliases of a list of leaves."""
    return tuple(node for node in map(node_from_json, data) if isinstance(node, Asset | AssetRef | AssetAlias))


def gate_argument_to_json(argument: GateArgument | None) -> object:
    """Return a number as it is, a span in seconds, and a timetable as an object; `None` stays `None`."""
    if isinstance(argument, timedelta):
        return argument.total_seconds()
    return argument.as_json() if isinstance(argument, Timetable) else argument


def _gate_from_json(data: list[object]) -> Gate:
    match data:
        case ["all" | "any" as kind, int(arity)]:
            return Gate(cast("GateKind", kind), arity)
        case ["at_least" | "times" as kind, int(arity), int(number)]:
            return Gate(cast("GateKind", kind), arity, number)
        case ["within", 1, int() | float() as seconds]:
            return Gate("within", 1, timedelta(seconds=seconds))
        case ["since", 1, timetable]:
            return Gate("since", 1, timetable_from_json(cast("Mapping[str, object]", timetable)))
        case _:
            raise InvalidSchedule(f"a stored condition has an unknown part {data!r}", fix="Update assetflow")
