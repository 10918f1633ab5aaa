"""Convert Prefect's schedule objects to timetables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

from prefect.schedules import Schedule as PrefectSchedule

from assetflow.core.time.timetables import CronTriggerTimetable, DeltaTriggerTimetable, RRuleTimetable, Timetable
from assetflow.core.values.schedule_checks import check_schedule
from assetflow.core.values.schedule_values import ScheduleValue, to_schedule
from assetflow.core.values.schedules import Schedule
from assetflow.errors import InvalidTimetable, not_a

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
        message, fix = not_a(timetable, "a timetable", 'Write CronTriggerTimetable("0 6 * * *")')
        raise InvalidTimetable(message, fix=fix)
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
