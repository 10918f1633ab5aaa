"""Events and recordings as JSON objects; what is empty is left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from assetflow.core.assets import Asset
from assetflow.core.events import AssetEvent, Origin, OriginKind, Recording, SourceFlowRun, SourceTaskRun, check_extra
from assetflow.core.partitions import check_key
from assetflow.core.uri import check_alias
from assetflow.errors import InvalidEvent

VERSION = 1

Json = Mapping[str, object]


def recording_to_json(recording: Recording) -> dict[str, object]:
    """One recording: `{"version": 1, "recording": id, "events": [...]}`."""
    return {
        "version": VERSION,
        "recording": str(recording.id),
        "events": [event_to_json(event) for event in recording.events],
    }


def recording_from_json(data: Json, *, where: str = "") -> Recording:
    """The recording that was written.

    Raises:
        InvalidEvent: the data is no recording, or one of a later version.
    """
    check_version(data, where)
    events = data.get("events")
    if not isinstance(events, list):
        raise InvalidEvent("a recording without a list of events", where=where, rule="2.2")
    return Recording(
        _uuid(data.get("recording"), "recording", where),
        tuple(event_from_json(cast(Json, event), where=where) for event in cast(list[object], events)),
    )


def event_to_json(event: AssetEvent) -> dict[str, object]:
    """One event, complete."""
    asset = event.asset
    return _without_empty(
        {
            "id": str(event.id),
            "uri": asset.uri,
            "name": asset.name if asset.name != asset.uri else None,
            "group": asset.group,
            "asset_extra": dict(asset.extra),
            "extra": dict(event.extra),
            "partition_key": event.partition_key,
            "aliases": list(event.aliases),
            "metrics": dict(event.metrics),
            "occurred": _time_text(event.occurred),
            "origin": origin_to_json(event.origin),
            "code_version": event.code_version,
            "data_version": event.data_version,
            "inputs": dict(event.inputs),
            "sequence": event.sequence,
            "recorded": _time_text(event.recorded),
        }
    )


def event_from_json(data: Json, *, where: str = "") -> AssetEvent:
    """The event that was written.

    Raises:
        InvalidEvent, InvalidAsset: something in it breaks chapter 1 or 2.
    """
    occurred = _time(data.get("occurred"), "occurred", where)
    if occurred is None:
        raise InvalidEvent("an event without the time at which it occurred", where=where, rule="2.2")
    return AssetEvent(
        id=_uuid(data.get("id"), "id", where),
        asset=Asset(
            uri=_text(data.get("uri"), "uri", where),
            name=_optional_text(data.get("name"), "name", where),
            group=_optional_text(data.get("group"), "group", where) or "",
            extra=check_extra(data.get("asset_extra"), where=where),
        ),
        occurred=occurred,
        origin=origin_from_json(_mapping(data.get("origin"), "origin", where), where),
        extra=check_extra(data.get("extra"), where=where),
        partition_key=read_partition_key(data, where),
        aliases=read_aliases(data, where),
        metrics=cast("Mapping[str, int | float]", _mapping(data.get("metrics"), "metrics", where)),
        code_version=_optional_text(data.get("code_version"), "code_version", where),
        data_version=_optional_text(data.get("data_version"), "data_version", where),
        inputs=cast("Mapping[str, int]", _mapping(data.get("inputs"), "inputs", where)),
        sequence=cast("int | None", data.get("sequence")),
        recorded=_time(data.get("recorded"), "recorded", where),
    )


def check_version(data: Json, where: str) -> None:
    """Refuse what a later assetflow wrote."""
    version = data.get("version", VERSION)
    if version != VERSION:
        raise InvalidEvent(
            f"version {version!r} of an event is not known here", where=where, rule="2.6", fix="Update assetflow"
        )


def read_partition_key(data: Json, where: str) -> str | None:
    """The partition key of a payload, checked (2.5)."""
    key = data.get("partition_key")
    return None if key is None else check_key(_text(key, "partition_key", where))


def read_aliases(data: Json, where: str) -> tuple[str, ...]:
    """The aliases of a payload, sorted and checked (1.7)."""
    aliases: object = data.get("aliases") or []
    if not isinstance(aliases, list):
        raise InvalidEvent(f"aliases is {aliases!r}, not a list of texts", where=where, rule="2.6")
    return tuple(sorted({check_alias(_text(alias, "aliases", where)) for alias in cast(list[object], aliases)}))


def origin_to_json(origin: Origin) -> dict[str, object]:
    """The origin of an event; what is empty is left out."""
    task, flow = origin.task_run, origin.flow_run
    return _without_empty(
        {
            "kind": origin.kind,
            "by": origin.by,
            "task_run": None if task is None else _without_empty({"id": str(task.id), "name": task.name}),
            "flow_run": None if flow is None else _flow_run_to_json(flow),
            "traceparent": origin.traceparent,
        }
    )


def _flow_run_to_json(run: SourceFlowRun) -> dict[str, object]:
    return _without_empty(
        {
            "id": str(run.id),
            "name": run.name,
            "flow_id": _uuid_text(run.flow_id),
            "flow_name": run.flow_name,
            "deployment_id": _uuid_text(run.deployment_id),
            "deployment_name": run.deployment_name,
            "parameters": None if run.parameters is None else dict(run.parameters),
            "scheduled_time": _time_text(run.scheduled_time),
            "data_interval_start": _time_text(run.data_interval_start),
            "data_interval_end": _time_text(run.data_interval_end),
        },
        keep={"parameters"} if run.parameters is not None else frozenset(),
    )


def origin_from_json(data: Json, where: str = "") -> Origin:
    """The origin that was written.

    Raises:
        InvalidEvent: something in it cannot be read.
    """
    task = _mapping(data.get("task_run"), "task_run", where)
    flow = _mapping(data.get("flow_run"), "flow_run", where)
    return Origin(
        kind=cast(OriginKind, data.get("kind", "api")),
        by=_optional_text(data.get("by"), "by", where) or "",
        task_run=SourceTaskRun(_uuid(task["id"], "task_run", where), str(task.get("name", ""))) if task else None,
        flow_run=_flow_run_from_json(flow, where) if flow else None,
        traceparent=_optional_text(data.get("traceparent"), "traceparent", where) or "",
    )


def _flow_run_from_json(data: Json, where: str) -> SourceFlowRun:
    return SourceFlowRun(
        id=_uuid(data.get("id"), "flow_run", where),
        name=str(data.get("name", "")),
        flow_id=_optional_uuid(data.get("flow_id"), "flow_id", where),
        flow_name=str(data.get("flow_name", "")),
        deployment_id=_optional_uuid(data.get("deployment_id"), "deployment_id", where),
        deployment_name=str(data.get("deployment_name", "")),
        parameters=cast("Mapping[str, object] | None", data.get("parameters")),
        scheduled_time=_time(data.get("scheduled_time"), "scheduled_time", where),
        data_interval_start=_time(data.get("data_interval_start"), "data_interval_start", where),
        data_interval_end=_time(data.get("data_interval_end"), "data_interval_end", where),
    )


def _without_empty(data: dict[str, object], keep: set[str] | frozenset[str] = frozenset()) -> dict[str, object]:
    return {key: value for key, value in data.items() if key in keep or value not in (None, "", [], {})}


def _time_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _time(value: object, field: str, where: str) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise InvalidEvent(
            f"{field} {value!r} is no time", where=where, rule="2.2", fix="Write 2026-01-01T00:00:00Z"
        ) from error
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _uuid_text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _uuid(value: object, field: str, where: str) -> UUID:
    try:
        return UUID(str(value))
    except ValueError as error:
        raise InvalidEvent(f"{field} {value!r} is no UUID", where=where, rule="2.2") from error


def _optional_uuid(value: object, field: str, where: str) -> UUID | None:
    return None if value is None else _uuid(value, field, where)


def _text(value: object, field: str, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidEvent(f"{field} {value!r} is no text", where=where, rule="2.2")
    return value


def _optional_text(value: object, field: str, where: str) -> str | None:
    return None if value is None else _text(value, field, where)


def _mapping(value: object, field: str, where: str) -> Json:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidEvent(f"{field} {value!r} is no JSON object", where=where, rule="2.2")
    return cast(Json, value)
