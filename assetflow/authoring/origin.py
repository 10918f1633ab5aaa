"""The origin of an event: the task run and the flow run that made it. Contract 2.2, 7.3."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID

from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext, TaskRunContext
from prefect.exceptions import MissingContextError
from prefect.logging import get_logger, get_run_logger

from assetflow.core.json_data import fit_object
from assetflow.core.time.timetables import PartitionedAtRuntime, Timetable
from assetflow.core.values.events import Origin, OriginKind, SourceFlowRun, SourceTaskRun
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.core.wire.run_context import run_context_from_json
from assetflow.errors import AssetflowError, UnsupportedPrefect
from assetflow.prefect_io.internals import deployment_id, flow_run_contexts
from assetflow.prefect_io.names import EVENTS_PARAMETER
from assetflow.prefect_io.rest import TaskApi
from assetflow.tracing import current_traceparent

if TYPE_CHECKING:
    from assetflow.prefect_io.schedule_times import DeploymentSchedule


_INSTANT = timedelta(microseconds=1)
# Prefect's types for the creator of a run: a schedule, an automation.
_SCHEDULE, _AUTOMATION = "SCHEDULE", "AUTOMATION"


class RunTimes(NamedTuple):
    """The scheduled time and the data interval of a run, in UTC.

    Attributes:
        scheduled: the time for which the run was scheduled.
        start: the start of the data interval: the time before `end` in the schedule that made the run.
        end: the end of the data interval: the time for which the schedule made the run.
    """

    scheduled: datetime | None
    start: datetime | None = None
    end: datetime | None = None


def run_times(
    run: FlowRun, timetable: Timetable | None, schedules: Callable[[], Sequence[DeploymentSchedule]]
) -> RunTimes:
    """Return the times of a run.

    Parameters:
        timetable: the timetable in the flow's code, or `None`.
        schedules: returns the schedules of the run's deployment in Prefect; called only if they are needed.

    Contract 7.3.
    """
    ours = run_context_from_json(run.context)
    if ours is not None and ours.tick is not None:
        # However late it starts, it is the run of this time.
        return RunTimes(ours.tick, ours.previous_tick, ours.tick)
    scheduled = _utc(run.expected_start_time)
    if scheduled is None or run.deployment_id is None:
        return RunTimes(scheduled)
    creator = None if run.created_by is None else run.created_by.type
    if run.auto_scheduled or creator == _SCHEDULE:
        return RunTimes(scheduled, _previous(run, scheduled, schedules()), scheduled)
    if creator == _AUTOMATION or (ours is not None and ours.decision is not None):
        return RunTimes(scheduled)
    return RunTimes(scheduled, *_last_complete(_utc(run.start_time) or scheduled, timetable, schedules()))


def _previous(run: FlowRun, time: datetime, schedules: Sequence[DeploymentSchedule]) -> datetime | None:
    """Return the time before `time` of the schedule that made the run."""
    maker = None if run.created_by is None else run.created_by.id
    # A later deploy replaces the schedules by new ones with new ids, which mostly have the same times.
    made = [each for each in schedules if each.id == maker] or [each for each in schedules if each.has(time)]
    found = {each.before(time) for each in made}
    return found.pop() if len(found) == 1 else None


def _last_complete(
    start: datetime, timetable: Timetable | None, schedules: Sequence[DeploymentSchedule]
) -> tuple[datetime | None, datetime | None]:
    """Return the last two times up to the start, if there is exactly one time schedule."""
    in_code = timetable is not None and not isinstance(timetable, PartitionedAtRuntime)
    if len(schedules) + in_code != 1:
        return None, None
    if timetable is not None and in_code:
        last = timetable.previous_before(start + _INSTANT)
        before = None if last is None else timetable.previous_before(last.time)
        return (None, None) if last is None or before is None else (before.time, last.time)
    end = schedules[0].last_until(start)
    begin = None if end is None else schedules[0].before(end)
    return (None, None) if begin is None else (begin, end)


def _utc(moment: datetime | None) -> datetime | None:
    # Prefect's times are pendulum objects, whose arithmetic differs from that of `datetime`.
    return None if moment is None else datetime.fromisoformat(moment.isoformat()).astimezone(UTC)


MAX_PARAMETER_BYTES = 16 * 1024
_SECONDS_FOR_A_NAME = 2.0
_SECONDS_FOR_SCHEDULES = 10.0

# By deployment and flow run.
_deployments: dict[tuple[UUID, UUID], Mapping[str, object]] = {}
_REMEMBERED = 32


def current_origin(kind: OriginKind) -> Origin:
    """Return the origin of an event that is made now: the current task run and flow run, if any."""
    context = TaskRunContext.get()
    task_run = None if context is None else SourceTaskRun(context.task_run.id, context.task_run.name)
    return Origin(kind, task_run=task_run, flow_run=_flow_run(), traceparent=current_traceparent())


def is_deployed() -> bool:
    """Return True inside a run of a deployment, including its subflows and tasks."""
    return deployment_id() is not None


def run_start() -> datetime | None:
    """Return when the run of a deployment around this code started, UTC; `None` outside of one, or on another machine.

    Contract 8.12.
    """
    run = next((context.flow_run for context in flow_run_contexts() if _is_of_deployment(context)), None)
    return None if run is None or run.start_time is None else run.start_time.astimezone(UTC)


def _flow_run() -> SourceFlowRun | None:
    contexts = list(flow_run_contexts())
    for context in contexts:
        run = context.flow_run
        if run is None:
            continue
        owner = next(filter(_is_of_deployment, contexts), context)
        times = _times(owner)
        deployed = deployment_id()
        return SourceFlowRun(
            id=run.id,
            name=run.name,
            flow_id=run.flow_id,
            flow_name="" if context.flow is None else context.flow.name,
            deployment_id=deployed,
            deployment_name="" if deployed is None else _deployment_name(deployed, cast(FlowRun, owner.flow_run)),
            parameters=_parameters(run),
            scheduled_time=times.scheduled,
            data_interval_start=times.start,
            data_interval_end=times.end,
        )
    return None


def _parameters(run: FlowRun) -> Mapping[str, object] | None:
    """Return the run's parameters as JSON that fits into an event, or `None` if they are too large.

    Contract 2.7.
    """
    given = {name: value for name, value in run.parameters.items() if name != EVENTS_PARAMETER}
    fitted = fit_object(given)
    return fitted if len(json.dumps(fitted)) <= MAX_PARAMETER_BYTES else None


def _is_of_deployment(context: FlowRunContext) -> bool:
    return context.flow_run is not None and context.flow_run.deployment_id is not None


def _times(context: FlowRunContext) -> RunTimes:
    """Return the scheduled time and the data interval of a flow run."""
    run = cast(FlowRun, context.flow_run)
    declaration = getattr(context.flow, "declaration", None)
    timetable = declaration.options.schedule.timetable if isinstance(declaration, FlowDeclaration) else None
    try:
        return run_times(run, timetable, lambda: _schedules(run))
    except UnsupportedPrefect as error:
        run_logger().warning("The update has no data interval: %s", error)
        return run_times(run, timetable, tuple)


def _schedules(run: FlowRun) -> Sequence[DeploymentSchedule]:
    """Return the schedules of a run's deployment, or an empty list if Prefect does not answer.

    An event without a data interval is better than no event.
    """
    try:
        found = _deployment(cast(UUID, run.deployment_id), run.id, _SECONDS_FOR_SCHEDULES).get("schedules")
        if not found:
            return ()
        # Imported only here: it loads a part of Prefect's server.
        from assetflow.prefect_io.schedule_times import DeploymentSchedule

        return [DeploymentSchedule.from_json(each) for each in cast("list[Mapping[str, object]]", found)]
    except AssetflowError as error:
        run_logger().warning("The update has no data interval: %s", error)
        return ()


def _deployment_name(deployed: UUID, run: FlowRun) -> str:
    """Return the deployment's name, or an empty text if Prefect does not answer."""
    with suppress(AssetflowError):
        ours = run_context_from_json(run.context)
        if ours is not None and ours.consumer and run.deployment_id == deployed:
            # Prefect's names have no slash.
            return ours.consumer.partition("/")[2]
        return str(_deployment(deployed, run.id, _SECONDS_FOR_A_NAME).get("name", ""))
    return ""


def _deployment(deployed: UUID, run: UUID, patience: float) -> Mapping[str, object]:
    """Return the name and the schedules of a deployment.

    Prefect is asked once for each run, because a deployment may change between runs.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    if (deployed, run) not in _deployments:
        with TaskApi.connect(patience=patience) as api:
            answer = cast("Mapping[str, object]", api.get(f"/deployments/{deployed}"))
        if len(_deployments) >= _REMEMBERED:
            _deployments.clear()
        _deployments[deployed, run] = {name: answer.get(name) for name in ("name", "schedules")}
    return _deployments[deployed, run]


def run_logger() -> logging.Logger | logging.LoggerAdapter[Any]:
    """Return the logger of the current run, whose lines show in Prefect, or assetflow's own outside of a run."""
    try:
        return get_run_logger()
    except MissingContextError:
        return get_logger("assetflow")
