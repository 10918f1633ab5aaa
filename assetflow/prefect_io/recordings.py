"""A recording as Prefect carries it: one artifact, which is durable, and one event for each update, which is fast.

Both directions stand here, so that what is written can be read: by the evaluator, and by tasks that read past events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast
from uuid import UUID

from assetflow.core.assets import Asset
from assetflow.core.codec.events import (
    Json,
    check_version,
    event_from_json,
    event_to_json,
    read_aliases,
    read_partition_key,
    recording_from_json,
    recording_to_json,
)
from assetflow.core.events import AssetEvent, Origin, Recording, SourceFlowRun, SourceTaskRun, check_extra
from assetflow.errors import InvalidEvent
from assetflow.prefect_io.markdown import code_span
from assetflow.prefect_io.names import (
    ALIAS_ROLE,
    ASSET_UPDATED,
    MATERIALIZATION_SUCCEEDED,
    RECORDING_LABEL,
    RECORDING_SIZE_LABEL,
    UPDATE_ARTIFACT,
    alias_resource_id,
    artifact_key,
)

# Prefect answers 204 to a larger event and does not store it.
MAX_EVENT_BYTES = 1_400_000
_MAX_ALIASES = 90
_SHOWN_EVENTS = 20
_SHOWN_TEXT = 300


def recording_to_artifact(recording: Recording) -> dict[str, object]:
    """The body that creates the artifact of a recording."""
    first = recording.events[0]
    flow_run, task_run = first.source_flow_run, first.source_task_run
    return {
        # One key for each asset: Prefect's list of artifacts shows its latest update and its history.
        "key": artifact_key(first.asset.name, first.uri),
        "type": UPDATE_ARTIFACT,
        "description": describe_recording(recording),
        "data": json.dumps(recording_to_json(recording), separators=(",", ":")),
        "flow_run_id": None if flow_run is None else str(flow_run.id),
        "task_run_id": None if task_run is None else str(task_run.id),
    }


def recording_from_artifact(artifact: Json) -> Recording:
    """The recording in an artifact of type `assetflow-update`.

    Raises:
        InvalidEvent, InvalidAsset: its data is no recording, is of a later version, or breaks chapters 1 and 2.
    """
    where = f"artifact {artifact.get('id')}"
    data = artifact.get("data")
    try:
        parsed: object = json.loads(data) if isinstance(data, str) else data
    except ValueError as error:
        raise InvalidEvent("the artifact holds no JSON", where=where, rule="2.2") from error
    if not isinstance(parsed, Mapping):
        raise InvalidEvent("the artifact holds no recording", where=where, rule="2.2")
    return recording_from_json(cast(Json, parsed), where=where)


def describe_recording(recording: Recording) -> str:
    """What was updated, in Markdown that is safe to render: a line for each event."""
    lines = [_sentence(event) for event in recording.events[:_SHOWN_EVENTS]]
    rest = len(recording.events) - len(lines)
    return "\n\n".join([*lines, f"and {rest} more"] if rest else lines)


def recording_to_prefect_events(recording: Recording) -> list[dict[str, object]]:
    """The Prefect events of a recording, without those that are too large for Prefect to keep."""
    events = [_to_prefect_event(event, recording) for event in recording.events]
    return [event for event in events if len(json.dumps(event)) <= MAX_EVENT_BYTES]


def recording_from_prefect_event(event: Json) -> Recording | None:
    """The recording that a Prefect event stands for; none if it is no update of an asset (2.6).

    An event that a task of assetflow sent gives its recording's id and that one event:
    `part_of_recording` tells how many belong together. Any other is a recording of its own, with the event's id.

    Raises:
        InvalidAsset, InvalidEvent: it breaks chapters 1 and 2.
    """
    name = event.get("event")
    if name not in (ASSET_UPDATED, MATERIALIZATION_SUCCEEDED):
        return None
    where = f"Prefect event {event.get('id')}"
    payload = _mapping(event.get("payload"), "payload", where)
    part = part_of_recording(event)
    if part is not None:
        return Recording(part[0], (event_from_json(_mapping(payload.get("event"), "event", where), where=where),))
    if name == MATERIALIZATION_SUCCEEDED:
        payload = {"extra": payload}
    check_version(payload, where)
    found = _from_outside(event, payload, where)
    return Recording(found.id, (found,))


def part_of_recording(event: Json) -> tuple[UUID, int] | None:
    """Recording and number of its events, for an event that a task of assetflow sent; none for all others.

    Raises:
        InvalidEvent: the labels are damaged.
    """
    resource = _mapping(event.get("resource"), "resource", f"Prefect event {event.get('id')}")
    recording = resource.get(RECORDING_LABEL)
    if event.get("event") != ASSET_UPDATED or recording is None:
        return None
    try:
        return UUID(str(recording)), int(str(resource.get(RECORDING_SIZE_LABEL)))
    except ValueError as error:
        raise InvalidEvent(
            f"the labels of the event name no recording: {recording!r}", where=f"Prefect event {event.get('id')}"
        ) from error


def _to_prefect_event(event: AssetEvent, recording: Recording) -> dict[str, object]:
    stored = event_to_json(event)
    return {
        "id": str(event.id),
        "occurred": stored["occurred"],
        "event": ASSET_UPDATED,
        "resource": {
            "prefect.resource.id": event.uri,
            "prefect.resource.name": event.asset.name,
            RECORDING_LABEL: str(recording.id),
            RECORDING_SIZE_LABEL: str(len(recording.events)),
        },
        "related": _related(event),
        "payload": {
            "version": 1,
            "extra": dict(event.extra),
            "partition_key": event.partition_key,
            "aliases": list(event.aliases),
            "event": stored,
        },
    }


def _related(event: AssetEvent) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []

    def add(kind: str, id: object, name: str) -> None:  # noqa: A002 (Prefect's word)
        if id is not None:
            resource = {"prefect.resource.id": f"prefect.{kind}.{id}", "prefect.resource.role": kind}
            found.append({**resource, "prefect.resource.name": name} if name else resource)

    run, task_run = event.source_flow_run, event.source_task_run
    if run is not None:
        add("flow-run", run.id, run.name)
        add("flow", run.flow_id, run.flow_name)
        add("deployment", run.deployment_id, run.deployment_name)
    if task_run is not None:
        add("task-run", task_run.id, task_run.name)
    return found + [
        {"prefect.resource.id": alias_resource_id(alias), "prefect.resource.role": ALIAS_ROLE}
        for alias in event.aliases[:_MAX_ALIASES]
    ]


def _from_outside(event: Json, payload: Json, where: str) -> AssetEvent:
    resource = _mapping(event.get("resource"), "resource", where)
    uri, name = resource.get("prefect.resource.id"), resource.get("prefect.resource.name")
    partition_key = read_partition_key(payload, where)
    stored = {"id": event.get("id"), "uri": uri, "occurred": event.get("occurred")}
    # The codec checks id, URI and time; what only Prefect's form has is added to it.
    plain = event_from_json(stored, where=where)
    named = name if isinstance(name, str) and name.strip() and name != uri else None
    return AssetEvent(
        id=plain.id,
        asset=Asset(uri=plain.uri, name=named),
        occurred=plain.occurred,
        origin=_origin(event),
        extra=check_extra(payload.get("extra"), where=where),
        partition_key=partition_key,
        aliases=read_aliases(payload, where),
    )


def _origin(event: Json) -> Origin:
    """Who posted an event, as far as Prefect's related resources tell."""
    ids: dict[str, UUID] = {}
    names: dict[str, str] = {}
    related = event.get("related")
    for each in cast("Sequence[Mapping[str, object]]", related if isinstance(related, list) else ()):
        role = str(each.get("prefect.resource.role", ""))
        kind, _, text = str(each.get("prefect.resource.id", "")).removeprefix("prefect.").partition(".")
        if kind == role and re.fullmatch(r"[0-9a-fA-F-]{36}", text):
            ids.setdefault(role, UUID(text))
            names.setdefault(role, str(each.get("prefect.resource.name", "")))
    run = None
    if "flow-run" in ids:
        run = SourceFlowRun(
            id=ids["flow-run"],
            name=names["flow-run"],
            flow_id=ids.get("flow"),
            flow_name=names.get("flow", ""),
            deployment_id=ids.get("deployment"),
            deployment_name=names.get("deployment", ""),
        )
    task_run = SourceTaskRun(ids["task-run"], names["task-run"]) if "task-run" in ids else None
    return Origin("prefect", task_run=task_run, flow_run=run)


def _sentence(event: AssetEvent) -> str:
    parts = [f"{code_span(_shortened(event.asset.name))} updated"]
    if event.asset.name != event.uri:
        parts[0] = f"{code_span(_shortened(event.asset.name))} ({code_span(_shortened(event.uri))}) updated"
    if event.partition_key is not None:
        parts.append(f"partition {code_span(event.partition_key)}")
    if event.aliases:
        parts.append("through " + ", ".join(f"alias {code_span(_shortened(alias))}" for alias in event.aliases[:5]))
    if event.metrics:
        parts.append(", ".join(f"{value:,} {name}" for name, value in sorted(event.metrics.items())))
    if event.extra:
        parts.append(code_span(_shortened(json.dumps(dict(event.extra), ensure_ascii=False))))
    return " · ".join(parts)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}…"


def _mapping(value: object, field: str, where: str) -> Json:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidEvent(f"{field} {value!r} is no JSON object", where=where, rule="2.6")
    return cast(Json, value)
