"""The options of `@flow`: as types; and those that say when and how much a run takes. Contract 9.8 to 9.12."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, cast

from prefect.schedules import Schedule as PrefectSchedule

from assetflow.core.time.timetables import CronTriggerTimetable, DeltaTriggerTimetable, RRuleTimetable, Timetable
from assetflow.core.values.schedule_values import ScheduleValue, to_schedule
from assetflow.core.values.schedules import ConsumerOptions, Schedule, WhilePaused, check_schedule
from assetflow.core.values.timing import Intake, OnDeadline, make_deadline
from assetflow.errors import InvalidTimetable, not_a

if TYPE_CHECKING:
    from prefect.flows import FlowStateHook
    from prefect.results import ResultSerializer, ResultStorage
    from prefect.task_runners import TaskRunner

# What `deadline=` takes.
DeadlineValue = timedelta | str | Timetable | None

_INTAKE = ("debounce", "max_wait", "min_events", "max_events", "cooldown")
TIMING = (*_INTAKE, "deadline", "on_deadline")


class UnnamedFlowOptions(TypedDict, total=False):
    """The options of Prefect's `flow`, except the name."""

    version: str | None
    flow_run_name: Callable[[], str] | str | None
    retries: int | None
    retry_delay_seconds: float | None
    task_runner: TaskRunner[Any] | None
    description: str | None
    timeout_seconds: float | None
    validate_parameters: bool
    persist_result: bool | None
    result_storage: ResultStorage | None
    result_serializer: ResultSerializer | None
    cache_result_in_memory: bool
    log_prints: bool | None
    on_completion: list[FlowStateHook[..., Any]] | None
    on_failure: list[FlowStateHook[..., Any]] | None
    on_cancellation: list[FlowStateHook[..., Any]] | None
    on_crashed: list[FlowStateHook[..., Any]] | None
    on_running: list[FlowStateHook[..., Any]] | None


class PrefectFlowOptions(UnnamedFlowOptions, total=False):
    """The options of Prefect's `flow`."""

    name: str | None


class TimingOptions(TypedDict, total=False):
    """The options of `@flow` about time and amounts. `None` takes an option away."""

    debounce: timedelta | None
    max_wait: timedelta | None
    min_events: int | None
    max_events: int | None
    cooldown: timedelta | None
    deadline: DeadlineValue
    on_deadline: OnDeadline | None


class FlowKeywords(PrefectFlowOptions, TimingOptions, total=False):
    """The options of Prefect's `flow`, those about time and amounts, and the version of the flow's code."""

    code_version: str | None


class UnnamedFlowKeywords(UnnamedFlowOptions, TimingOptions, total=False):
    """The options of Prefect's `flow`, except the name, those about time and amounts, and the code version."""

    code_version: str | None


def read_consumer(
    schedule: Schedule, while_paused: WhilePaused, coalesce: bool, given: TimingOptions
) -> ConsumerOptions:
    """Return the options of the consumer of a flow with this schedule.

    Parameters:
        given: a deadline that is a text is a cron in the time zone of the schedule's opening hours.

    Raises:
        InvalidSchedule: `on_deadline` is given without a deadline, a value has another type, or options contradict each
            other.
        InvalidTimetable: the text is not a cron.
    """
    intake = Intake(**{name: cast("Any", given.get(name)) for name in _INTAKE})
    deadline = given.get("deadline")
    if isinstance(deadline, str):
        zone = "UTC" if schedule.opening is None else schedule.opening.timezone
        deadline = CronTriggerTimetable(deadline, zone)
    then = cast("OnDeadline", given.get("on_deadline"))
    return ConsumerOptions(schedule, while_paused, coalesce, intake, make_deadline(deadline, then))


def change_timing(schedule: Schedule, before: TimingOptions, options: FlowKeywords) -> TimingOptions:
    """Return the options about time and amounts of a flow, after some were changed. Others stay.

    Parameters:
        schedule: the schedule that the flow had before.
        options: those that are given now, among them some of Prefect's.
    """
    given = {name: value for name, value in options.items() if name in TIMING}
    changed = {**before, **given}
    if schedule.one_by_one:
        changed["max_events"] = given.get("max_events")
    # What happens at a deadline goes with it.
    kept = "alert" if changed.get("deadline") is None else before.get("on_deadline")
    changed["on_deadline"] = given.get("on_deadline", kept) or "alert"
    return cast("TimingOptions", changed)


# The values of `@flow(schedule=…)`.
FlowSchedule = ScheduleValue | PrefectSchedule | None

_JUST_NOW = timedelta(minutes=1)


def read_schedule(value: object) -> Schedule:
    """Return the schedule that a value of `schedule=` means. A schedule of Prefect's becomes a timetable.

    Raises:
        InvalidSchedule: a flow cannot be scheduled on the value, or the schedule cannot work.
    """
    if isinstance(value, PrefectSchedule):
        return Schedule(timetable=to_timetable(value))
    schedule = to_schedule(value)
    check_schedule(schedule)
    timetable = cast(object, schedule.timetable)
    if isinstance(timetable, PrefectSchedule):
        return replace(schedule, timetable=to_timetable(timetable))
    if timetable is not None and not isinstance(timetable, Timetable):
        raise not_a(InvalidTimetable, timetable, "a timetable", 'Write CronTriggerTimetable("0 6 * * *")')
    return schedule


def to_timetable(schedule: PrefectSchedule) -> Timetable:
    """Return a timetable with the times of a Prefect schedule, on the wall clock of its time zone. Contract 6.2.

    Raises:
        InvalidTimetable: the schedule has no times, or an option that timetables do not have.
    """
    _refuse_unsupported(schedule)
    zone = schedule.timezone or "UTC"
    if schedule.cron is not None:
        return CronTriggerTimetable(schedule.cron, zone)
    if schedule.rrule is not None:
        return RRuleTimetable(schedule.rrule, zone)
    if schedule.interval is not None:
        return DeltaTriggerTimetable(schedule.interval, _anchor(schedule))
    raise InvalidTimetable(f"{schedule!r} has no times", fix="Give a cron text, an interval or a recurrence rule")


def _refuse_unsupported(schedule: PrefectSchedule) -> None:
    unsupported = {
        "parameters": bool(schedule.parameters),
        "active=False": not schedule.active,
        "day_or=False": schedule.cron is not None and not schedule.day_or,
    }
    for option, given in unsupported.items():
        if given:
            raise InvalidTimetable(
                f"a Prefect schedule with {option} cannot be a flow's schedule",
                fix="Leave it out, or give the schedule to the deployment (`schedules:` in prefect.yaml)",
            )


def _anchor(schedule: PrefectSchedule) -> datetime | None:
    """Return the first time of an interval, or `None` if the user chose none.

    In that case Prefect fills in the current time, and the times would move with each import of the flow.
    """
    anchor = schedule.anchor_date
    anchor = anchor.astimezone(UTC) if anchor.tzinfo else anchor.replace(tzinfo=UTC)
    return None if abs(datetime.now(UTC) - anchor) < _JUST_NOW else anchor
