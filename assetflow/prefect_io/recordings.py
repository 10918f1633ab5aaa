"""Write a recording for Prefect, and read it back: one durable artifact, and one fast event for each update.

Both directions stand here, so that what is written can be read: by the evaluator, and by tasks that read past events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast
from uuid import UUID

from assetflow.core.graph.lineage import Learned
from assetflow.core.json_data import fit_text
from assetflow.core.values.events import (
    SCHEMA,
    AssetEvent,
    Origin,
    Pin,
    Recording,
    SourceFlowRun,
    SourceTaskRun,
    check_extra,
)
from assetflow.core.wire import fields
from assetflow.core.wire.events import (
    check_version,
    event_from_json,
    event_to_json,
    read_aliases,
    read_data_version,
    read_partition_key,
    recording_from_json,
    recording_to_json,
)
from assetflow.core.wire.fields import Json
from assetflow.errors import AssetflowError, InvalidEvent
from assetflow.prefect_io.asset_events import asset_of, assets_read, is_copy, learned_from, maker_of, related_in
from assetflow.prefect_io.automation_text import code_span
from assetflow.prefect_io.connection import id_of, objects_of
from assetflow.prefect_io.names import (
    ALIAS_ROLE,
    ASSET_UPDATED,
    MATERIALIZATION_SUCCEEDED,
    RECORDING_LABEL,
    RECORDING_SIZE_LABEL,
    UPDATE_ARTIFACT,
    alias_resource_id,
    artifact_key,
    related,
)
from assetflow.prefect_io.rest import TaskApi

# What the metadata of a `@materialize` task says to assetflow, and what it may say.
ABOUT = "assetflow"
_ABOUT = frozenset({"partition_key", "data_version"})
# The event of a pin that names an instant only.
NOBODYS = UUID(int=0)
# Prefect answers 204 to a larger event, but does not store it.
MAX_EVENT_BYTES = 1_400_000
_MAX_ALIASES = 90
_SHOWN_EVENTS = 20
_SHOWN_TEXT = 300


def recording_to_artifact(recording: Recording) -> dict[str, object]:
    """Return the body that creates the artifact of a recording."""
    first = recording.told[0]
    flow_run, task_run = first.source_flow_run, first.source_task_run
    return {
        # Each asset has its own key, so that Prefect's list of artifacts shows its latest update and its history.
        "key": artifact_key(first.asset.name, first.uri),
        "type": UPDATE_ARTIFACT,
        "description": describe_recording(recording),
        "data": json.dumps(recording_to_json(recording), separators=(",", ":")),
        "flow_run_id": None if flow_run is None else str(flow_run.id),
        "task_run_id": None if task_run is None else str(task_run.id),
    }


def recording_from_artifact(artifact: Json) -> Recording:
    """Return the recording in an artifact of type `assetflow-update`.

    Raises:
        InvalidEvent, InvalidAsset: its data is not a recording, has a newer version, or breaks contract 1 or 2.
    """
    where = f"artifact {artifact.get('id')}"
    data = artifact.get("data")
    try:
        parsed: object = json.loads(data) if isinstance(data, str) else data
    except (ValueError, RecursionError) as error:
        raise InvalidEvent("the data of the artifact is not JSON", where=where, rule="2.2") from error
    if not isinstance(parsed, Mapping):
        raise InvalidEvent("the data of the artifact is not a recording", where=where, rule="2.2")
    recording = recording_from_json(cast(Json, parsed), where=where)
    return replace(recording, durable=created(artifact)) if "created" in artifact else recording


def ids_in_artifact(artifact: Json) -> tuple[UUID, frozenset[UUID]] | None:
    """Return the id of the recording in an artifact, and the ids of which the ledger has one if it has the recording.

    `None` for a recording that need not make an update (contract 8.2). What is not a recording has the artifact's id,
    under which the ledger refuses it.
    """
    try:
        recording = recording_from_artifact(artifact)
    except AssetflowError:
        number = UUID(str(artifact["id"]))
        return number, frozenset({number})
    # A recording that cannot be recorded is refused under its own id.
    numbers = frozenset({recording.id, *(event.id for event in recording.events)})
    return (recording.id, numbers) if recording.events else None


def created(artifact: Json) -> datetime:
    """Return the time at which the server wrote an artifact, by its clock."""
    return datetime.fromisoformat(str(artifact["created"]))


def describe_recording(recording: Recording) -> str:
    """Describe what a recording says in Markdown that is safe to render, with a line for each asset and key."""
    told = [
        *((event, "updated") for event in recording.events),
        *((event, "skipped, is up to date") for event in recording.confirmed),
        *(
            (event, f"observed, version {code_span(_shortened(event.data_version or ''))}")
            for event in recording.observed
        ),
        *((event, _held_back(event)) for event in recording.held_back),
    ]
    lines = [_sentence(event, what) for event, what in told[:_SHOWN_EVENTS]]
    rest = len(told) - len(lines)
    return "\n\n".join([*lines, f"and {rest} more"] if rest else lines)


def recording_to_prefect_events(recording: Recording) -> list[dict[str, object]]:
    """Return the Prefect events of a recording, without those that are too large for Prefect to store."""
    events = [_to_prefect_event(event, recording) for event in recording.events]
    return [event for event in events if len(json.dumps(event)) <= MAX_EVENT_BYTES]


def recording_from_prefect_event(event: Json) -> Recording | None:
    """Return the recording in a Prefect event, or `None` if the event is not an update of an asset. Contract 2.6.

    For an event that a task of assetflow sent, the recording has its id and that one event; `part_of_recording` returns
    how many belong to it. Any other event is a recording of its own, with the event's id.

    Raises:
        InvalidAsset, InvalidEvent: the event breaks contract 1 or 2.
    """
    name = event.get("event")
    if name not in (ASSET_UPDATED, MATERIALIZATION_SUCCEEDED) or is_copy(event):
        return None
    where = f"Prefect event {event.get('id')}"
    payload = fields.mapping(event.get("payload"), "payload", where)
    part = part_of_recording(event)
    if part is not None:
        one = event_from_json(fields.mapping(payload.get("event"), "event", where), where=where)
        return Recording(part[0], (one,), _moment(payload.get("durable")))
    if name == MATERIALIZATION_SUCCEEDED:
        payload = read_metadata(payload, where)
    check_version(payload, where)
    found = _from_outside(event, payload, where)
    return Recording(found.id, (found,), _moment(event.get("received")))


def learned_from_prefect_event(event: Json) -> Learned | None:
    """Return what a Prefect event tells of what its deployment makes and reads, or `None`. Contract 2.9.

    Raises:
        InvalidAsset, InvalidEvent: the event breaks contract 1.
    """
    return None if is_copy(event) else learned_from(event, _origin(event))


def read_metadata(metadata: Json, where: str) -> Json:
    """Return the payload of an update for the metadata of a `@materialize` task. Contract 2.6.

    Raises:
        InvalidEvent: what the metadata has under "assetflow" is not an object with the names of `_ABOUT`.
    """
    about = fields.mapping(metadata.get(ABOUT), ABOUT, where)
    if unknown := sorted(about.keys() - _ABOUT):
        known = " and ".join(sorted(_ABOUT))
        raise InvalidEvent(f"{ABOUT} has {unknown[0]!r}", where=where, rule="2.6", fix=f"It takes {known}")
    return {**about, "extra": {name: value for name, value in metadata.items() if name != ABOUT}}


def _moment(value: object) -> datetime | None:
    """Return a time that Prefect or a task wrote; `None` if it is missing or unreadable: then the ledger's counts."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if moment is None or moment.tzinfo is None else moment


def part_of_recording(event: Json) -> tuple[UUID, int] | None:
    """Return the recording's id and number of events for an event that a task of assetflow sent, else `None`.

    Raises:
        InvalidEvent: the labels are damaged.
    """
    resource = fields.mapping(event.get("resource"), "resource", f"Prefect event {event.get('id')}")
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
            **({} if event.data_version is None else {"data_version": event.data_version}),
            "event": stored,
            **({} if recording.durable is None else {"durable": recording.durable.isoformat()}),
        },
    }


def related_to(run: SourceFlowRun | None) -> list[dict[str, str]]:
    """Return the related resources that are a flow run with its flow and deployment."""
    if run is None:
        return []
    kinds = {"flow-run": (run.id, run.name), "flow": (run.flow_id, run.flow_name)}
    kinds["deployment"] = (run.deployment_id, run.deployment_name)
    return [related(f"prefect.{kind}.{id_}", kind, name) for kind, (id_, name) in kinds.items() if id_ is not None]


def _related(event: AssetEvent) -> list[dict[str, str]]:
    task = event.source_task_run
    maker = [] if task is None else [related(f"prefect.task-run.{task.id}", "task-run", task.name)]
    aliases = [related(alias_resource_id(alias), ALIAS_ROLE) for alias in event.aliases[:_MAX_ALIASES]]
    return [*related_to(event.source_flow_run), *maker, *aliases]


def _from_outside(event: Json, payload: Json, where: str) -> AssetEvent:
    partition_key = read_partition_key(payload, where)
    occurred = fields.time(event.get("occurred"), "occurred", where)
    is_native = event.get("event") == MATERIALIZATION_SUCCEEDED
    # Who knows when its task run began says up to when it has read.
    unplaced = Pin(0, NOBODYS, occurred)
    return AssetEvent(
        id=fields.uuid(event.get("id"), "id", where),
        asset=asset_of(event, where),
        occurred=occurred,
        origin=_origin(event),
        extra=check_extra(payload.get("extra"), where=where),
        partition_key=partition_key,
        aliases=read_aliases(payload, where),
        data_version=read_data_version(payload, where),
        read={asset.uri: unplaced for asset in assets_read(event, where)} if is_native else {},
    )


def is_unplaced(event: AssetEvent) -> bool:
    """Return True if an event names what its task has read, and nobody has said yet up to when. Contract 2.9."""
    return bool(event.read) and any(pin.event == NOBODYS for pin in event.read.values())


def read_up_to(event: AssetEvent, starts: Mapping[UUID, datetime]) -> AssetEvent:
    """Return an event; one that is not placed gets what was recorded before its task run began, if that is known."""
    if not is_unplaced(event):
        return event
    run = event.origin.task_run
    began = None if run is None else starts.get(run.id)
    return replace(event, read={} if began is None else dict.fromkeys(event.read, Pin(0, NOBODYS, began)))


def _origin(event: Json) -> Origin:
    """Return who posted an event, as far as Prefect's related resources show it."""
    ids: dict[str, UUID] = {}
    names: dict[str, str] = {}
    for each in related_in(event):
        role = str(each.get("prefect.resource.role", ""))
        kind, _, text = str(each.get("prefect.resource.id", "")).removeprefix("prefect.").partition(".")
        number = fields.uuid_or_none(text)
        if kind == role and number is not None:
            ids.setdefault(role, number)
            names.setdefault(role, fit_text(fields.text_or_empty(each.get("prefect.resource.name"))))
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
    return Origin("prefect", task_run=task_run, flow_run=run, by=maker_of(event))


def _held_back(event: AssetEvent) -> str:
    failed = ", ".join(code_span(_shortened(each.check)) for each in event.checks if not each.passed)
    return f"held back by {failed}"


def _sentence(event: AssetEvent, what: str) -> str:
    parts = [f"{code_span(_shortened(event.asset.name))} {what}"]
    if event.asset.name != event.uri:
        parts[0] = f"{code_span(_shortened(event.asset.name))} ({code_span(_shortened(event.uri))}) {what}"
    if event.partition_key is not None:
        parts.append(f"partition {code_span(event.partition_key)}")
    if event.aliases:
        parts.append("through " + ", ".join(f"alias {code_span(_shortened(alias))}" for alias in event.aliases[:5]))
    if metrics := [f"{value:,} {name}" for name, value in sorted(event.metrics.items()) if name != SCHEMA]:
        parts.append(", ".join(metrics))
    if event.extra:
        parts.append(code_span(_shortened(json.dumps(dict(event.extra), ensure_ascii=False))))
    return " · ".join(parts)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}…"


# The artifact has everything: if the server is too busy for the events, the evaluator only learns of the update later.
SECONDS_FOR_EVENTS = 5.0
_EVENTS_A_POST = 100
# Two observations at the same time leave two of them, which the next one replaces.
_MOST_SEEN = 20
_SEEN = "seen-"

Versions = Mapping[str | None, str | None]


def keep(api: TaskApi, recording: Recording) -> Recording:
    """Write the artifact of a recording, which makes its updates durable; return the recording with that instant.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    stored = api.create("/artifacts/", recording_to_artifact(recording))
    return replace(recording, durable=created(stored)) if "created" in stored else recording


def keep_observation(api: TaskApi, recording: Recording) -> None:
    """Write what an observation saw of a source.

    If Prefect has another version, or none, that becomes an artifact of its own, which stays: the ledger may make an
    update of it. Otherwise one artifact for each source, which the next one replaces, says when the version was seen
    last. Contract 8.2.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    body = recording_to_artifact(recording)
    (newest, *_) = [*_artifacts(api, body["key"], 1), None]
    if newest is None or _versions_in(newest) != _versions_of(recording):
        api.create("/artifacts/", body)
        return
    key = f"{_SEEN}{body['key']}"
    before = _artifacts(api, key, _MOST_SEEN)
    api.create("/artifacts/", {**body, "key": key})
    for each in before:
        api.delete(f"/artifacts/{id_of(each)}")


def _artifacts(api: TaskApi, key: object, limit: int) -> Sequence[Mapping[str, object]]:
    """Return the newest artifacts with a key."""
    body = {"artifacts": {"key": {"any_": [key]}}, "sort": "CREATED_DESC", "limit": limit}
    return objects_of(api.post("/artifacts/filter", body))


def _versions_in(artifact: Mapping[str, object]) -> Versions | None:
    """Return the versions that an artifact tells of, by key; `None` if it cannot be read."""
    try:
        return _versions_of(recording_from_artifact(artifact))
    except AssetflowError:
        return None


def _versions_of(recording: Recording) -> Versions:
    return {event.partition_key: event.data_version for event in recording.told}


def announce(api: TaskApi, recording: Recording) -> None:
    """Post the events of a recording, so that the evaluator learns of it at once.

    Raises:
        PrefectUnreachable, PrefectRefused: the evaluator finds the artifact within seconds anyway.
    """
    events = recording_to_prefect_events(recording)
    for start in range(0, len(events), _EVENTS_A_POST):
        api.post("/events", events[start : start + _EVENTS_A_POST], patience=SECONDS_FOR_EVENTS)
