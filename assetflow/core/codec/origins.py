"""The origin of an event as JSON.

An origin only accompanies an update and must not stop it (contract 2.7). Therefore reading one never raises: it leaves
out fields that are wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args
from uuid import UUID

from assetflow.core.values.events import Origin, OriginKind, SourceFlowRun, SourceTaskRun
from assetflow.core.wire import fields
from assetflow.core.wire.fields import Json

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
            "flow_id": _uuid_text(run.flow_id),
            "flow_name": run.flow_name,
            "deployment_id": _uuid_text(run.deployment_id),
            "deployment_name": run.deployment_name,
            "parameters": None if run.parameters is None else dict(run.parameters),
            "scheduled_time": fields.time_text(run.scheduled_time),
            "data_interval_start": fields.time_text(run.data_interval_start),
            "data_interval_end": fields.time_text(run.data_interval_end),
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


def _uuid_text(value: UUID | None) -> str | None:
    return None if value is None else str(value)
