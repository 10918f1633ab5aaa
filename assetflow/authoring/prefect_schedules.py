"""Prefect's schedule objects as time tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

from prefect.schedules import Schedule as PrefectSchedule

from assetflow.core.schedules import Schedule, refuse_endless_waiting, to_schedule
from assetflow.core.timetables import CronTriggerTimetable, DeltaTriggerTimetable, RRuleTimetable, Timetable
from assetflow.errors import InvalidTimetable

_JUST_NOW = timedelta(minutes=1)


def read_schedule(value: object) -> Schedule:
    """The schedule that a value of `schedule=` means; Prefect's own schedules are time tables too.

    Raises:
        InvalidSchedule: it is nothing that a flow can be scheduled on, or cannot work.
    """
    if isinstance(value, PrefectSchedule):
        return Schedule(timetable=to_timetable(value))
    schedule = to_schedule(value)
    refuse_endless_waiting(schedule)
    timetable = cast(object, schedule.timetable)
    if isinstance(timetable, PrefectSchedule):
        return replace(schedule, timetable=to_timetable(timetable))
    if timetable is not None and not isinstance(timetable, Timetable):
        raise InvalidTimetable(f"{timetable!r} is no time table", fix='Write CronTriggerTimetable("0 6 * * *")')
    return schedule


def to_timetable(schedule: PrefectSchedule) -> Timetable:
    """The time table that has the times of a Prefect schedule, on the wall clock of its zone (6.2).

    Raises:
        InvalidTimetable: it names no times, or it asks for what time tables do not know.
    """
    _refuse_what_has_no_place(schedule)
    zone = schedule.timezone or "UTC"
    if schedule.cron is not None:
        return CronTriggerTimetable(schedule.cron, zone)
    if schedule.rrule is not None:
        return RRuleTimetable(schedule.rrule, zone)
    if schedule.interval is not None:
        return DeltaTriggerTimetable(schedule.interval, _anchor(schedule))
    raise InvalidTimetable(f"{schedule!r} has no times", fix="Give a cron text, an interval or a recurrence rule")


def _refuse_what_has_no_place(schedule: PrefectSchedule) -> None:
    told = {
        "parameters": bool(schedule.parameters),
        "active=False": not schedule.active,
        "day_or=False": schedule.cron is not None and not schedule.day_or,
    }
    for option, given in told.items():
        if given:
            raise InvalidTimetable(
                f"a Prefect schedule with {option} cannot be a flow's schedule",
                fix="Leave it out, or give the schedule to the deployment (`schedules:` in prefect.yaml)",
            )


def _anchor(schedule: PrefectSchedule) -> datetime | None:
    """The first time of an interval; none if nobody chose it.

    Prefect puts the present moment there then: the times would move with each import of the flow.
    """
    anchor = schedule.anchor_date
    anchor = anchor.astimezone(UTC) if anchor.tzinfo else anchor.replace(tzinfo=UTC)
    return None if abs(datetime.now(UTC) - anchor) < _JUST_NOW else anchor
