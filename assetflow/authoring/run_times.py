"""The scheduled time of a flow run, and its data interval. Contract 7.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from prefect.client.schemas.objects import FlowRun

from assetflow.core.time.timetables import PartitionedAtRuntime, Timetable
from assetflow.core.wire.run_context import run_context_from_json

_INSTANT = timedelta(microseconds=1)
# Prefect's types for the creator of a run: a schedule, an automation.
_SCHEDULE, _AUTOMATION = "SCHEDULE", "AUTOMATION"


class TimeSchedule(Protocol):
    """A schedule with times: one of the deployment, or the timetable in the code."""

    def last_until(self, moment: datetime) -> datetime | None: ...

    def before(self, time: datetime) -> datetime | None: ...


class ScheduleOfDeployment(TimeSchedule, Protocol):
    """A schedule that Prefect keeps with the deployment."""

    @property
    def id(self) -> object: ...

    def has(self, time: datetime) -> bool: ...


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
    run: FlowRun, timetable: Timetable | None, schedules: Callable[[], Sequence[ScheduleOfDeployment]]
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


def _previous(run: FlowRun, time: datetime, schedules: Sequence[ScheduleOfDeployment]) -> datetime | None:
    """Return the time before `time` of the schedule that made the run."""
    maker = None if run.created_by is None else run.created_by.id
    # A later deploy replaces the schedules by new ones with new ids, which mostly have the same times.
    made = [each for each in schedules if each.id == maker] or [each for each in schedules if each.has(time)]
    found = {each.before(time) for each in made}
    return found.pop() if len(found) == 1 else None


def _last_complete(
    start: datetime, timetable: Timetable | None, schedules: Sequence[TimeSchedule]
) -> tuple[datetime | None, datetime | None]:
    """Return the last two times up to the start, if there is exactly one time schedule."""
    if timetable is not None and not isinstance(timetable, PartitionedAtRuntime):
        schedules = (*schedules, _CodeSchedule(timetable))
    if len(schedules) != 1:
        return None, None
    end = schedules[0].last_until(start)
    begin = None if end is None else schedules[0].before(end)
    return (None, None) if begin is None else (begin, end)


class _CodeSchedule:
    """The timetable in a flow's code as a `TimeSchedule`."""

    def __init__(self, timetable: Timetable) -> None:
        self._timetable = timetable

    def last_until(self, moment: datetime) -> datetime | None:
        return self.before(moment + _INSTANT)

    def before(self, time: datetime) -> datetime | None:
        tick = self._timetable.previous_before(time)
        return None if tick is None else tick.time


def _utc(moment: datetime | None) -> datetime | None:
    # Prefect's times are pendulum objects, whose arithmetic differs from that of `datetime`.
    return None if moment is None else datetime.fromisoformat(moment.isoformat()).astimezone(UTC)
