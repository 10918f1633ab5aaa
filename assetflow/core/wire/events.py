"""Events and recordings as JSON objects, without empty fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from assetflow.core.json_data import fit_json, fit_number, fit_text
from assetflow.core.partitions import check_key
from assetflow.core.shapes import as_json, from_json
from assetflow.core.values.assets import Asset, check_data_version
from assetflow.core.values.events import (
    AssetEvent,
    CheckResult,
    Origin,
    OriginKind,
    Pin,
    Recording,
    SourceFlowRun,
    SourceTaskRun,
    check_extra,
    fit_metrics,
)
from assetflow.core.values.uri import check_alias, check_name
from assetflow.core.values.words import iso
from assetflow.core.wire import fields
from assetflow.core.wire.fields import Json
from assetflow.errors import InvalidEvent

_KINDS: tuple[object, ...] = get_args(OriginKind)


def origin_to_json(origin: Origin) -> dict[str, object]:
    """Return an origin as JSON, without empty fields."""
    task, flow = origin.task_run, origin.flow_run
    return fields.without_empty(
        {
            "kind": origin.kind,
            "by": origin.by,
            "task_run": None if task is None else fields.without_empty({"id": str(task.id), "name": task.name}),
            "flow_run": None if flow is None else _flow_run_to_json(flow),
            "traceparent": origin.traceparent,
        }
    )


def origin_from_json(data: object) -> Origin:
    """Return the origin that was written. Data that is not an origin gives one of the kind "api"."""
    given = fields.mapping_or_empty(data)
    kind = given.get("kind")
    return Origin(
        kind=cast(OriginKind, kind) if kind in _KINDS else "api",
        by=fields.text_or_empty(given.get("by")),
        task_run=_task_run_from_json(fields.mapping_or_empty(given.get("task_run"))),
        flow_run=_flow_run_from_json(fields.mapping_or_empty(given.get("flow_run"))),
        traceparent=fields.text_or_empty(given.get("traceparent")),
    )


def _flow_run_to_json(run: SourceFlowRun) -> dict[str, object]:
    return fields.without_empty(
        {
            "id": str(run.id),
            "name": run.name,
            "flow_id": fields.uuid_text(run.flow_id),
            "flow_name": run.flow_name,
            "deployment_id": fields.uuid_text(run.deployment_id),
            "deployment_name": run.deployment_name,
            "parameters": None if run.parameters is None else dict(run.parameters),
            "scheduled_time": iso(run.scheduled_time),
            "data_interval_start": iso(run.data_interval_start),
            "data_interval_end": iso(run.data_interval_end),
        },
        keep=frozenset() if run.parameters is None else frozenset(("parameters",)),
    )


def _task_run_from_json(data: Json) -> SourceTaskRun | None:
    number = fields.uuid_or_none(data.get("id"))
    return None if number is None else SourceTaskRun(number, fields.text_or_empty(data.get("name")))


def _flow_run_from_json(data: Json) -> SourceFlowRun | None:
    number = fields.uuid_or_none(data.get("id"))
    if number is None:
        return None
    parameters = data.get("parameters")
    return SourceFlowRun(
        id=number,
        name=fields.text_or_empty(data.get("name")),
        flow_id=fields.uuid_or_none(data.get("flow_id")),
        flow_name=fields.text_or_empty(data.get("flow_name")),
        deployment_id=fields.uuid_or_none(data.get("deployment_id")),
        deployment_name=fields.text_or_empty(data.get("deployment_name")),
        parameters=cast("Mapping[str, object]", parameters) if isinstance(parameters, Mapping) else None,
        scheduled_time=fields.time_or_none(data.get("scheduled_time")),
        data_interval_start=fields.time_or_none(data.get("data_interval_start")),
        data_interval_end=fields.time_or_none(data.get("data_interval_end")),
    )


VERSION = 1


def recording_to_json(recording: Recording) -> dict[str, object]:
    """Return a recording as `{"version": 1, "recording": id, "events": [...]}`, with what it confirms, observed and
    held back."""
    stored: dict[str, object] = {
        "version": VERSION,
        "recording": str(recording.id),
        "events": [event_to_json(event) for event in recording.events],
        "confirmed": [event_to_json(event) for event in recording.confirmed],
        "observed": [event_to_json(event) for event in recording.observed],
        "held_back": [event_to_json(event) for event in recording.held_back],
    }
    return fields.without_empty(stored, keep=frozenset({"events"}))


def recording_from_json(data: Json, *, where: str = "") -> Recording:
    """Return the recording that `recording_to_json` or another sender wrote.

    Parameters:
        where: the place that an error names.

    Raises:
        InvalidEvent: the data is not a recording, or another version of assetflow wrote it.
        InvalidAsset, InvalidEvent: an event breaks chapter 1 or 2 of the contract.
    """
    check_version(data, where)
    if "events" not in data:
        raise InvalidEvent("the recording has no list of events", where=where, rule="2.2")
    number = fields.uuid(data.get("recording"), "the id of the recording", where)
    events, confirmed, observed, held_back = (
        _events(data, name, where) for name in ("events", "confirmed", "observed", "held_back")
    )
    return Recording(number, events, confirmed=confirmed, observed=observed, held_back=held_back)


def _events(data: Json, name: str, where: str) -> tuple[AssetEvent, ...]:
    events = data.get(name, [])
    if not isinstance(events, list):
        raise InvalidEvent(f"the recording has no list of {name}", where=where, rule="2.2")
    found: list[AssetEvent] = []
    for place, event in enumerate(cast("list[object]", events)):
        if not isinstance(event, Mapping):
            raise InvalidEvent(
                f"{name}[{place}] is {fields.abridged(event)}, not a JSON object", where=where, rule="2.2"
            )
        found.append(event_from_json(cast(Json, event), where=where))
    return tuple(found)


def event_to_json(event: AssetEvent) -> dict[str, object]:
    """Return an event with all its fields that are not empty."""
    asset = event.asset
    return fields.without_empty(
        {
            "id": str(event.id),
            "uri": asset.uri,
            "name": asset.name if asset.name != asset.uri else None,
            "names": list(asset.other_names),
            "group": asset.group,
            "asset_extra": dict(asset.extra),
            "extra": dict(event.extra),
            "partition_key": event.partition_key,
            "aliases": list(event.aliases),
            "metrics": dict(event.metrics),
            "occurred": iso(event.occurred),
            "origin": origin_to_json(event.origin),
            "code_version": event.code_version,
            "data_version": event.data_version,
            "inputs": dict(event.inputs),
            "read": {uri: {"event": str(pin.event), "recorded": iso(pin.recorded)} for uri, pin in event.read.items()},
            "checks": checks_to_json(event.checks),
            "started": iso(event.started),
            "sequence": event.sequence,
            "recorded": iso(event.recorded),
        }
    )


def event_from_json(data: Json, *, where: str = "") -> AssetEvent:
    """Return an event from outside, after checking it. Contract 2.7.

    Its origin and metrics are changed so that they fit, instead of being refused.

    Parameters:
        where: the place that an error names.

    Raises:
        InvalidEvent, InvalidAsset: the event breaks chapter 1 or 2 of the contract.
    """
    asset = Asset(
        uri=fields.text(data.get("uri"), "uri", where),
        name=fields.optional_text(data.get("name"), "name", where),
        group=fields.optional_text(data.get("group"), "group", where) or "",
        extra=check_extra(data.get("asset_extra"), where=where, path="asset_extra"),
    )
    names = [check_name(name) for name in _texts(data, "names", where)]
    if names:
        asset = Asset.known(asset.uri, asset.name, asset.group, asset.extra, other_names=tuple(names))
    extra = check_extra(data.get("extra"), where=where)
    key, aliases = read_partition_key(data, where), read_aliases(data, where)
    version = read_data_version(data, where)
    return _event(data, asset, extra, key, aliases, version, fit_json(data.get("origin")), where)


def recorded_event_from_json(data: Json, *, where: str = "") -> AssetEvent:
    """Return an event from a ledger, without the checks that were made when it was recorded.

    Parameters:
        where: the place that an error names.

    Raises:
        InvalidEvent: the data is damaged.
    """
    uri = fields.text(data.get("uri"), "uri", where)
    extra, asset_extra = data.get("extra"), data.get("asset_extra")
    name, group = fields.text_or_empty(data.get("name")) or uri, fields.text_or_empty(data.get("group"))
    asset = Asset.known(uri, name, group, fields.mapping(asset_extra, "asset_extra", where))
    key, aliases = (
        fields.optional_text(data.get("partition_key"), "partition_key", where),
        _texts(data, "aliases", where),
    )
    told, version = fields.mapping(extra, "extra", where), _version(data.get("data_version"))
    return _event(data, asset, told, key, tuple(aliases), version, data.get("origin"), where)


def check_version(data: Json, where: str, what: str = "an update") -> None:
    """Refuse data that another version of assetflow wrote. What others send need not have a version.

    Parameters:
        what: what the error calls the data.

    Raises:
        InvalidEvent: the data has another version.
    """
    version = data.get("version", VERSION)
    if version != VERSION:
        raise InvalidEvent(
            f"this is version {fields.abridged(version)} of {what}, and this assetflow reads version {VERSION}",
            where=where,
            rule="2.6",
            fix="Update assetflow",
        )


def read_partition_key(data: Json, where: str) -> str | None:
    """Return the partition key of a payload, after checking it. Contract 2.5."""
    key = data.get("partition_key")
    return None if key is None else check_key(fields.text(key, "partition_key", where))


def read_data_version(data: Json, where: str) -> str | None:
    """Return the data version of a payload, after checking it. Contract 8.2."""
    version = data.get("data_version")
    return None if version is None else check_data_version(version, where=where)


def read_aliases(data: Json, where: str) -> tuple[str, ...]:
    """Return the aliases of a payload, sorted, after checking them. Contract 1.7."""
    return tuple(sorted({check_alias(alias) for alias in _texts(data, "aliases", where)}))


def _texts(data: Json, name: str, where: str) -> list[str]:
    texts: object = data.get(name) or []
    if not isinstance(texts, list):
        raise InvalidEvent(f"{name} is {fields.abridged(texts)}, not a list of texts", where=where, rule="2.6")
    return [fields.text(each, f"{name}[{at}]", where) for at, each in enumerate(cast("list[object]", texts))]


def _event(
    data: Json,
    asset: Asset,
    extra: Mapping[str, object],
    partition_key: str | None,
    aliases: tuple[str, ...],
    data_version: str | None,
    origin: object,
    where: str,
) -> AssetEvent:
    return AssetEvent(
        id=fields.uuid(data.get("id"), "id", where),
        asset=asset,
        occurred=fields.time(data.get("occurred"), "occurred", where),
        origin=origin_from_json(origin),
        extra=extra,
        partition_key=partition_key,
        aliases=aliases,
        metrics=fit_metrics(data.get("metrics")),
        code_version=_version(data.get("code_version")),
        data_version=data_version,
        inputs=_sequences(data.get("inputs")),
        read=_pins(data.get("read"), _sequences(data.get("inputs"))),
        checks=checks_from_json(data.get("checks")),
        sequence=_sequence(data.get("sequence")),
        recorded=fields.time_or_none(data.get("recorded")),
        started=fields.time_or_none(data.get("started")),
    )


def checks_to_json(results: Sequence[CheckResult]) -> object:
    """Return what checks found as JSON."""
    return as_json(list(results)) if results else []


def checks_from_json(data: object) -> tuple[CheckResult, ...]:
    """Return what `checks_to_json` wrote; nothing for what cannot be read, as it must not stop an update (2.7)."""
    try:
        return from_json(tuple[CheckResult, ...], fit_json(data)) if data else ()
    except ValueError:
        return ()


def _version(value: object) -> str | None:
    return fit_text(value) if isinstance(value, str) else None


def _sequence(value: object) -> int | None:
    found = fit_number(value)
    return found if isinstance(found, int) else None


def _sequences(data: object) -> dict[str, int]:
    found = {fit_text(uri): _sequence(value) for uri, value in fields.mapping_or_empty(data).items()}
    return {uri: sequence for uri, sequence in found.items() if sequence is not None}


def _pins(data: object, sequences: Mapping[str, int]) -> dict[str, Pin]:
    """Return what a task read; what cannot be read is left out, as it must not stop an update (2.7)."""
    found: dict[str, Pin] = {}
    for uri, value in fields.mapping_or_empty(data).items():
        pin = fields.mapping_or_empty(value)
        number, recorded = fields.uuid_or_none(pin.get("event")), fields.time_or_none(pin.get("recorded"))
        if number is not None and recorded is not None:
            found[fit_text(uri)] = Pin(sequences.get(fit_text(uri), 0), number, recorded)
    return found
