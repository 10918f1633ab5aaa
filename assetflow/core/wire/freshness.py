"""What chapter 8 adds to declarations and decisions, as JSON: spans in seconds, tokens as pairs of kind and value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from assetflow.core.freshness.records import Asked, Reads
from assetflow.core.partitions import PartitionMapper, mapper_from_json
from assetflow.core.values.assets import Asset, AssetRef
from assetflow.core.values.conditions import Token
from assetflow.core.values.keeping import Cause, Keeping, Output
from assetflow.core.wire.conditions import node_from_json, node_to_json
from assetflow.errors import InvalidSchedule

Json = Mapping[str, Any]
Mappers = tuple[tuple[Asset | AssetRef, PartitionMapper], ...]


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
        "mappers": [[node_to_json(target), mapper.as_json()] for target, mapper in keeping.mappers],
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
