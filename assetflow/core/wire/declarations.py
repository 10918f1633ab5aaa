"""A flow's declaration (schedule, options, outlets and inlets) as one flat JSON text in its parameter schema.

The text has the nodes of the condition in postfix order, so a deep condition gives no deeper JSON than a wide one.
Prefect silently loses a parameter schema that is nested more than about 120 levels deep.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

from assetflow.core.freshness.records import Asked, Reads
from assetflow.core.partitions import PartitionMapper, mapper_from_json
from assetflow.core.time.timetables import Timetable, timetable_from_json
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.values.conditions import Gate, GateArgument, GateKind, Leaf, Token, from_postfix
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.keeping import Cause, DataFlow, Keeping, Output
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule, WhilePaused
from assetflow.core.values.timing import Deadline, Intake, OnDeadline, Opening
from assetflow.core.values.uri import check_name
from assetflow.core.values.watchers import watcher_from_json
from assetflow.core.wire import fields
from assetflow.errors import AssetflowError, InvalidSchedule

Mappers = tuple[tuple[Asset | AssetRef, PartitionMapper], ...]


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


def keeping_to_json(keeping: Keeping) -> dict[str, object]:
    """Return how a flow keeps its outputs up to date."""
    expected = keeping.expected_duration
    return {
        "kind": keeping.kind,
        "starts": [node_to_json(start) for start in keeping.starts],
        "on": sorted(keeping.on),
        "catchup": keeping.catchup,
        "lookback": keeping.lookback,
        "retries": keeping.retries,
        "retry_delay": keeping.retry_delay.total_seconds(),
        "expected_duration": None if expected is None else expected.total_seconds(),
        "mappers": mappers_to_json(keeping.mappers),
    }


def keeping_from_json(data: Json) -> Keeping:
    """Return what `keeping_to_json` wrote."""
    expected = data["expected_duration"]
    return Keeping(
        data["kind"],
        tuple(_asset(start) for start in data["starts"]),
        frozenset(data["on"]),
        data["catchup"],
        data["lookback"],
        data["retries"],
        timedelta(seconds=data["retry_delay"]),
        None if expected is None else timedelta(seconds=expected),
        mappers_from_json(data["mappers"]),
    )


def mappers_to_json(mappers: Mappers) -> list[object]:
    """Return mappers, each with the asset or reference whose keys it maps."""
    return [[node_to_json(target), mapper.as_json()] for target, mapper in mappers]


def mappers_from_json(pairs: Iterable[Sequence[Any]]) -> Mappers:
    """Return pairs of an asset or a reference and its mapper."""
    return tuple((_asset(target), mapper_from_json(mapper)) for target, mapper in pairs)


def outputs_to_json(outputs: Iterable[Output]) -> list[object]:
    """Return what a flow makes, each asset with what it is made from and its code version."""
    return [
        {"makes": list(each.asset), "reads": [list(token) for token in each.inlets], "code_version": each.code_version}
        for each in outputs
    ]


def outputs_from_json(data: Iterable[Json]) -> tuple[Output, ...]:
    """Return what `outputs_to_json` wrote."""
    return tuple(
        Output(Token(*each["makes"]), tuple(Token(*token) for token in each["reads"]), each["code_version"])
        for each in data
    )


def causes_to_json(causes: Iterable[Cause]) -> list[object]:
    """Return causes, each as an object without empty fields."""
    fields = ({"kind": each.kind, "asset": each.uri, "partition_key": each.key} for each in causes)
    return [{name: value for name, value in each.items() if value} for each in fields]


def causes_from_json(data: Iterable[Json]) -> tuple[Cause, ...]:
    """Return what `causes_to_json` wrote."""
    return tuple(Cause(each["kind"], each.get("asset", ""), each.get("partition_key")) for each in data)


def reads_to_json(reads: Reads) -> dict[str, object]:
    """Return the inputs of a flow, each with its mapper, or null if it is read whole."""
    return {uri: None if mapper is None else mapper.as_json() for uri, mapper in sorted(reads.items())}


def reads_from_json(data: Json) -> dict[str, PartitionMapper | None]:
    """Return what `reads_to_json` wrote."""
    return {uri: None if mapper is None else mapper_from_json(mapper) for uri, mapper in data.items()}


def asked_to_json(asked: Asked) -> dict[str, object]:
    """Return what a flow was asked for."""
    because = causes_to_json(asked.because)
    return {
        "kind": asked.kind,
        "because": because,
        "code_versions": dict(asked.code_versions),
        "reads": reads_to_json(asked.reads),
    }


def asked_from_json(data: Json) -> Asked:
    """Return what `asked_to_json` wrote."""
    because = causes_from_json(data["because"])
    return Asked(data["kind"], because, dict(data["code_versions"]), reads_from_json(data["reads"]))


def _asset(data: object) -> Asset | AssetRef:
    node = node_from_json(data)
    if not isinstance(node, Asset | AssetRef):
        raise InvalidSchedule(f"an asset or a reference belongs here, not {node!r}")
    return node


Json = Mapping[str, Any]

_SPANS = ("debounce", "max_wait", "cooldown")
_COUNTS = ("min_events", "max_events")


def timing_to_json(options: ConsumerOptions) -> dict[str, object]:
    """Return what a consumer says about time, each only if it says it."""
    opening, deadline = options.schedule.opening, options.deadline
    return fields.without_empty(
        {
            "opening": None if opening is None else _opening_to_json(opening),
            "intake": _intake_to_json(options.intake),
            "deadline": None if deadline is None else _deadline_to_json(deadline),
            "on_deadline": None if deadline is None else deadline.then,
        }
    )


def _opening_to_json(opening: Opening) -> dict[str, object]:
    until = None if opening.until is None else opening.until.as_json()
    return fields.without_empty({"timetable": opening.timetable.as_json(), "until": until})


def _deadline_to_json(deadline: Deadline) -> dict[str, object]:
    if deadline.after is not None:
        return {"after": deadline.after.total_seconds()}
    return {"at": None if deadline.at is None else deadline.at.as_json()}


def _intake_to_json(intake: Intake) -> dict[str, object]:
    given = {name: getattr(intake, name) for name in (*_SPANS, *_COUNTS)}
    return {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in given.items()
        if value is not None
    }


def opening_from_json(data: Json) -> Opening | None:
    """Return the opening hours of a stored declaration; `None` if it has none."""
    opening = cast("Json | None", data.get("opening"))
    if opening is None:
        return None
    until = opening.get("until")
    return Opening(
        timetable_from_json(cast("Json", opening["timetable"])),
        None if until is None else timetable_from_json(cast("Json", until)),
    )


def intake_from_json(data: Json) -> Intake:
    """Return the intake of a stored declaration."""
    given = cast("dict[str, int]", data.get("intake", {}))
    spans = {name: timedelta(seconds=given[name]) for name in _SPANS if name in given}
    return Intake(
        debounce=spans.get("debounce"),
        max_wait=spans.get("max_wait"),
        cooldown=spans.get("cooldown"),
        min_events=given.get("min_events"),
        max_events=given.get("max_events"),
    )


def deadline_from_json(data: Json) -> Deadline | None:
    """Return the deadline of a stored declaration; `None` if it has none."""
    given = cast("Json | None", data.get("deadline"))
    if given is None:
        return None
    after, at = given.get("after"), given.get("at")
    return Deadline(
        after=None if after is None else timedelta(seconds=cast("float", after)),
        at=None if at is None else timetable_from_json(cast("Json", at)),
        then=cast("OnDeadline", data.get("on_deadline", "alert")),
    )


VERSION = 1
# Measured on Prefect 3.8 with SQLite: 5 MB are deployed and shown in seconds, 20 MB make the server time out.
LARGEST_TEXT = 5_000_000


@dataclass(frozen=True)
class FlowDeclaration:
    """A flow's schedule and options, and the assets that its tasks update (`produces`) and read (`reads`).

    Attributes:
        outputs: what each asset is made from, and by which version of the code; empty if neither is known. Then each
            asset is made from all that the flow reads (contract chapter 8).
    """

    options: ConsumerOptions = field(default_factory=ConsumerOptions)
    produces: tuple[Outlet, ...] = ()
    reads: tuple[Outlet, ...] = ()
    outputs: tuple[Output, ...] = ()

    def __post_init__(self) -> None:
        made = self.outputs or tuple(Output(token) for token in _tokens(self.produces))
        data = DataFlow(made, _tokens(self.reads), self._policies)
        if data != self.options.data:
            object.__setattr__(self, "options", replace(self.options, data=data))

    @property
    def _policies(self) -> Mapping[Token, FreshnessPolicy]:
        """The freshness policies that its assets carry. Of two for one asset, the one of an outlet counts (8.11)."""
        given = [each for each in (*self.produces, *self.reads) if isinstance(each, Asset)]
        found: dict[Token, FreshnessPolicy] = {}
        for asset in (*given, *self.options.schedule.named_assets):
            if asset.freshness is not None:
                found.setdefault(asset.token, asset.freshness)
        return found

    @property
    def assets(self) -> tuple[Asset, ...]:
        """All assets that the declaration names, in order; one asset may stand there several times."""
        outlets = (each for each in (*self.produces, *self.reads) if isinstance(each, Asset))
        return (*self.options.schedule.named_assets, *outlets)


def uris_of_names(declarations: Iterable[FlowDeclaration]) -> Mapping[str, str]:
    """Return the URIs of all names that declarations give to assets. Of two for one name, the first one counts."""
    assets = [asset for each in declarations for asset in each.assets]
    return {asset.name: asset.uri for asset in reversed(assets)}


def resolved(token: Token, uris: Mapping[str, str]) -> Token:
    """Return the token by URI of a name that is among `uris`, and others as they are."""
    return Token("uri", uris[token.value]) if token.kind == "name" and token.value in uris else token


def declaration_to_text(declaration: FlowDeclaration) -> str:
    """Return the text that a deployment stores.

    Raises:
        InvalidSchedule: the text is too large for Prefect.
    """
    options, schedule = declaration.options, declaration.options.schedule
    condition, parts = schedule.condition, schedule.partitioning
    timetable, keeping = schedule.timetable, schedule.keeping
    data: dict[str, object] = {
        "version": VERSION,
        "nodes": None if condition is None else [node_to_json(node) for node in condition.postfix],
        "partitioning": None if parts is None else _partitioning_to_json(parts),
        "timetable": None if timetable is None else timetable.as_json(),
        "keeping": None if keeping is None else keeping_to_json(keeping),
        "while_paused": None if options.while_paused == "drop" else options.while_paused,
        "coalesce": options.coalesce or None,
        "produces": [node_to_json(outlet) for outlet in declaration.produces],
        "reads": [node_to_json(outlet) for outlet in declaration.reads],
    }
    data = fields.without_empty(data) | timing_to_json(options)
    if _has_outputs(declaration):
        data["outputs"] = outputs_to_json(options.data.outputs)
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    if len(text) > LARGEST_TEXT:
        raise InvalidSchedule(
            f"the schedule and its assets take {len(text):,} characters, and Prefect can store {LARGEST_TEXT:,} with a "
            "deployment",
            fix="Schedule the flow on fewer assets, or on an alias that stands for them",
        )
    return text


def declaration_from_text(text: str, *, where: str = "") -> FlowDeclaration:
    """Return the declaration that a deployment stores.

    Parameters:
        where: the place that an error names.

    Raises:
        InvalidSchedule: the text is damaged, or another version of the format.
    """
    try:
        data = cast(object, json.loads(text))
        if not isinstance(data, dict):
            raise InvalidSchedule("a stored schedule is not a JSON object")
        return _declaration_from_json(cast(Json, data))
    except AssetflowError as error:
        raise InvalidSchedule(error.message, where=where, fix=error.fix, rule=error.rule) from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidSchedule(f"a stored schedule is damaged: {error!r}", where=where, fix="Deploy it again") from error


def _has_outputs(declaration: FlowDeclaration) -> bool:
    """Return True if it counts what each asset is made from, or by which version of the code."""
    options = declaration.options
    has_versions = any(output.code_version is not None for output in declaration.outputs)
    return options.schedule.keeping is not None or has_versions or bool(options.data.policies)


def _declaration_from_json(data: Json) -> FlowDeclaration:
    if data.get("version") != VERSION:
        raise InvalidSchedule(
            f"a stored schedule has version {data.get('version')!r}, this assetflow reads version {VERSION}",
            fix="Update assetflow, or deploy again with this version",
        )
    nodes = data.get("nodes")
    partitioning = data.get("partitioning")
    timetable = data.get("timetable")
    keeping = data.get("keeping")
    schedule = Schedule(
        condition=None if nodes is None else from_postfix(map(node_from_json, cast(Sequence[object], nodes))),
        partitioning=None if partitioning is None else _partitioning_from_json(cast(Json, partitioning)),
        timetable=None if timetable is None else timetable_from_json(cast("dict[str, object]", timetable)),
        opening=opening_from_json(data),
        keeping=None if keeping is None else keeping_from_json(cast(Json, keeping)),
    )
    return FlowDeclaration(
        ConsumerOptions(
            schedule,
            cast(WhilePaused, data.get("while_paused", "drop")),
            bool(data.get("coalesce", False)),
            intake_from_json(data),
            deadline_from_json(data),
        ),
        produces=outlets_from_json(cast(Sequence[object], data.get("produces", ()))),
        reads=outlets_from_json(cast(Sequence[object], data.get("reads", ()))),
        outputs=outputs_from_json(cast("Sequence[Json]", data.get("outputs", ()))),
    )


def _tokens(outlets: Sequence[Outlet]) -> tuple[Token, ...]:
    """Return the tokens of assets and references; aliases stand for no data (8.1)."""
    return tuple(dict.fromkeys(each.token for each in outlets if not isinstance(each, AssetAlias)))


def _partitioning_to_json(parts: Partitioning) -> dict[str, object]:
    return {"default": parts.default.as_json(), "mappers": mappers_to_json(parts.mappers)}


def _partitioning_from_json(data: Json) -> Partitioning:
    pairs = cast("Sequence[Sequence[object]]", data.get("mappers", ()))
    return Partitioning(mapper_from_json(data["default"]), mappers_from_json(pairs))
