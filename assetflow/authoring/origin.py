"""Where an event comes from: the task run and the flow run around this code (2.2, 7.3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple, cast
from uuid import UUID

from prefect.client.schemas.objects import FlowRun
from prefect.context import TaskRunContext

from assetflow.core.codec.run_context import run_context_from_json
from assetflow.core.codec.schedules import FlowDeclaration
from assetflow.core.events import Origin, OriginKind, SourceFlowRun, SourceTaskRun
from assetflow.errors import AssetflowError
from assetflow.prefect_io.internals import deployment_id, flow_run_contexts
from assetflow.prefect_io.names import EVENTS_PARAMETER
from assetflow.prefect_io.task_api import TaskApi
from assetflow.tracing import current_traceparent

MAX_PARAMETER_BYTES = 16 * 1024
_SECONDS_FOR_A_NAME = 2.0

_deployment_names: dict[UUID, str] = {}


def current_origin(kind: OriginKind) -> Origin:
    """Who makes an event here and now: the task run and the flow run that this code runs in, if any."""
    context = TaskRunContext.get()
    task_run = None if context is None else SourceTaskRun(context.task_run.id, context.task_run.name)
    return Origin(kind, task_run=task_run, flow_run=_flow_run(), traceparent=current_traceparent())


def is_deployed() -> bool:
    """Whether this code runs in a run of a deployment, in a flow below it, or in one of its tasks."""
    return deployment_id() is not None


def _flow_run() -> SourceFlowRun | None:
    for context in flow_run_contexts():
        run = context.flow_run
        if run is None:
            continue
        times = _times(run, getattr(context.flow, "declaration", None))
        deployed = deployment_id()
        return SourceFlowRun(
            id=run.id,
            name=run.name,
            flow_id=run.flow_id,
            flow_name="" if context.flow is None else context.flow.name,
            deployment_id=deployed,
            deployment_name="" if deployed is None else _deployment_name(deployed),
            parameters=_parameters(run),
            scheduled_time=times.scheduled,
            data_interval_start=times.start,
            data_interval_end=times.end,
        )
    return None


class _Times(NamedTuple):
    """When a run was to start, and its data interval: the previous and the own time of its time schedule (7.3)."""

    scheduled: datetime | None
    start: datetime | None = None
    end: datetime | None = None


def _times(run: FlowRun, declaration: object) -> _Times:
    ours = run_context_from_json(run.context)
    if ours is not None and ours.tick is not None:
        # Whenever it runs in the end, it is the run of this time.
        return _Times(ours.tick, ours.previous_tick, ours.tick)
    time = _utc(run.expected_start_time)
    if time is None or not run.auto_scheduled or not isinstance(declaration, FlowDeclaration):
        return _Times(time)
    # Prefect's own schedule of the deployment, beside a time table in the flow: the time is its, the interval ours.
    timetable = declaration.options.schedule.timetable
    if timetable is None:
        return _Times(time)
    before = timetable.previous_before(time)
    return _Times(time, None if before is None else before.time, time)


def _parameters(run: FlowRun) -> Mapping[str, object] | None:
    """The run's parameters as Prefect stores them; none if they are too large to travel with each event."""
    given = {name: value for name, value in run.parameters.items() if name != EVENTS_PARAMETER}
    try:
        text = json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return cast("dict[str, object]", json.loads(text)) if len(text) <= MAX_PARAMETER_BYTES else None


def _deployment_name(id: UUID) -> str:  # noqa: A002 (what it is)
    """The deployment's name, asked once; an event without it is better than none."""
    if id not in _deployment_names:
        try:
            with TaskApi.connect(patience=_SECONDS_FOR_A_NAME) as api:
                answer = cast("Mapping[str, object]", api.get(f"/deployments/{id}"))
        except AssetflowError:
            return ""
        _deployment_names[id] = str(answer.get("name", ""))
    return _deployment_names[id]


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
