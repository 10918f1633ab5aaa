"""Read what the consumers of a scenario read and make, and how they keep it up to date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from assetflow.core.partitions import mapper_from_json
from assetflow.core.simulate.conditions import MapperPairs, check_mapper_form, read_asset, read_leaf, read_mappers
from assetflow.core.simulate.reading import Deferred, as_list, as_number, as_object, as_span, as_text, is_object
from assetflow.core.values.assets import Asset, AssetRef
from assetflow.core.values.conditions import Leaf
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.keeping import DataFlow, Keeping, Output
from assetflow.core.values.schedules import Partitioning, Schedule, check_mapper_target
from assetflow.errors import InvalidSchedule

KEEPING = ("eager", "on_missing", "lazy")
DATA_KEYS = ("makes", "reads", "code_version", "freshness")
_PLAIN_KEYS = ("catchup", "lookback", "retries", "retry_delay", "expected")
_KEYS: dict[str, tuple[str, ...]] = {
    "eager": (*_PLAIN_KEYS, "on", "triggers", "partitioned", "mappers"),
    "on_missing": (*_PLAIN_KEYS, "triggers", "partitioned", "mappers"),
    "lazy": ("retries", "retry_delay", "expected"),
}
_POLICY_KEYS = ("maximum_lag", "deadline", "timezone", "warn_after", "inputs")


@dataclass(frozen=True)
class LastingRuns:
    """How the runs of a consumer go that last from their begin to their end.

    Attributes:
        takes: the seconds that its first, second … run takes; `None` if its runs end by a step.
        outcomes: the states in which they end.
        gives: the data versions of each output that they give.
    """

    takes: tuple[float, ...] | None = None
    outcomes: tuple[str, ...] = ()
    gives: Mapping[str, tuple[object, ...]] | None = None


def read_keeping(kind: str, value: object, where: str) -> Deferred[Schedule]:
    """Read an Eager, OnMissing or Lazy schedule."""
    data = as_object(value, where, _KEYS[kind])
    triggers = [read_leaf(each, f"{where}, triggers") for each in as_list(data.get("triggers", []), where)]
    partitioned = data.get("partitioned")
    own = read_mappers(data.get("mappers", []), where)
    of_keys = None if partitioned is None else _read_partitioning(partitioned, f"{where}, partitioned")
    options: dict[str, Any] = {key: data[key] for key in ("catchup", "lookback", "retries", "on") if key in data}
    if kind == "on_missing":
        options["on"] = ()
    for name, key in (("retry_delay", "retry_delay"), ("expected_duration", "expected")):
        if key in data:
            options[name] = as_span(data[key])

    def build() -> Schedule:
        keeping = Keeping(
            "lazy" if kind == "lazy" else "eager",
            tuple(_start(trigger()) for trigger in triggers),
            mappers=tuple((check_mapper_target(target()), mapper_from_json(mapper)) for target, mapper in own),
            **options,
        )
        return Schedule(partitioning=None if of_keys is None else of_keys(), keeping=keeping)

    return build


def read_data_flow(data: Mapping[str, object], where: str) -> tuple[Deferred[DataFlow], Deferred[tuple[Asset, ...]]]:
    """Read what a consumer reads and makes, with its code version and its policies; also as the assets themselves."""
    makes = _read_outputs(data.get("makes"), f"{where}, makes")
    reads = [read_asset(each, f"{where}, reads") for each in as_list(data.get("reads", []), f"{where}, reads")]
    policies = as_object(data.get("freshness") or {}, f"{where}, freshness")
    read = [(read_asset(uri, where), _read_policy(policy, f"{where}, freshness")) for uri, policy in policies.items()]
    code_version = cast("str | None", data.get("code_version"))

    def build() -> DataFlow:
        outputs = [
            Output(output().token, tuple(inlet().token for inlet in inlets), code_version) for output, inlets in makes
        ]
        return DataFlow(
            tuple(outputs),
            tuple(each().token for each in reads),
            {asset().token: policy() for asset, policy in read},
        )

    def declared() -> tuple[Asset, ...]:
        return tuple(each() for each in (*(output for output, _ in makes), *reads))

    return build, declared


def read_lasting_runs(data: Mapping[str, object], where: str) -> LastingRuns | None:
    """Read how the runs of a consumer go; `None` for one whose runs are over at once."""
    if "makes" not in data:
        return None
    takes = data.get("takes")
    given = cast("list[object]", takes) if isinstance(takes, list) else [takes]
    seconds = None if takes is None else as_list(given, f"{where}, takes")
    gives = as_object(data.get("gives") or {}, f"{where}, gives")
    return LastingRuns(
        None if seconds is None else tuple(as_number(each, f"{where}, takes") for each in seconds),
        tuple(as_text(each, f"{where}, outcomes") for each in as_list(data.get("outcomes", []), where)),
        {Asset(uri).uri: tuple(as_list(versions, f"{where}, gives")) for uri, versions in gives.items()},
    )


def _read_partitioning(value: object, where: str) -> Deferred[Partitioning]:
    data = as_object(value, where, ("default_mapper", "mappers"))
    default = data.get("default_mapper", "identity")
    check_mapper_form(default, f"{where}, default_mapper")
    pairs: MapperPairs = read_mappers(data.get("mappers", []), where)
    return lambda: Partitioning(
        mapper_from_json(default),
        tuple((check_mapper_target(target()), mapper_from_json(mapper)) for target, mapper in pairs),
    )


def _read_outputs(value: object, where: str) -> list[tuple[Deferred[Asset], list[Deferred[Asset]]]]:
    inlets = value if is_object(value) else {as_text(each, where): () for each in as_list(value or [], where)}
    return [
        (read_asset(output, where), [read_asset(each, where) for each in as_list(given, where)])
        for output, given in inlets.items()
    ]


def _read_policy(value: object, where: str) -> Deferred[FreshnessPolicy]:
    data = as_object(value, where, _POLICY_KEYS)
    inputs = data.get("inputs")
    read = None if inputs is None else [read_asset(each, where) for each in as_list(inputs, where)]

    def build() -> FreshnessPolicy:
        warn_after = data.get("warn_after")
        return FreshnessPolicy(
            as_span(data.get("maximum_lag")),
            cast("str | None", data.get("deadline")),
            cast(str, data.get("timezone", "UTC")),
            None if warn_after is None else as_span(warn_after),
            None if read is None else [each() for each in read],
        )

    return build


def _start(leaf: Leaf) -> Asset | AssetRef:
    if isinstance(leaf, Asset | AssetRef):
        return leaf
    raise InvalidSchedule(
        f"{leaf!r} cannot start an Eager flow", rule="8.1", fix="Name assets or references; alias inlets are not inputs"
    )
