"""Compute the times of a deployment's schedules (cron, interval, recurrence rule) as Prefect does.

This includes Prefect's behaviour when clocks change: a data interval begins where Prefect started the previous run.
Importing this module imports a part of Prefect's server, which takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter

from assetflow.errors import PrefectRefused
from assetflow.prefect_io.internals import CLOCK_CHANGE, needed_for, schedule_dates

with needed_for("A data interval"):
    from prefect.server.schemas.schedules import SCHEDULE_TYPES, CronSchedule, IntervalSchedule, RRuleSchedule

_INSTANT = timedelta(microseconds=1)
_FIRST_SPAN = timedelta(hours=1)
_LAST_SPAN = timedelta(days=366 * 50)

_SCHEDULE: TypeAdapter[SCHEDULE_TYPES] = TypeAdapter(SCHEDULE_TYPES)


@dataclass(frozen=True)
class DeploymentSchedule:
    """One schedule of a deployment.

    Attributes:
        id: the schedule's id, which changes with each deploy.
        schedule: the schedule itself.
    """

    id: UUID
    schedule: SCHEDULE_TYPES

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> DeploymentSchedule:
        """Read an entry of a deployment's `schedules` from Prefect's API.

        Raises:
            PrefectRefused: this version of Prefect does not know this kind of schedule.
        """
        try:
            return cls(UUID(str(value.get("id"))), _SCHEDULE.validate_python(value.get("schedule")))
        except ValueError as error:
            raise PrefectRefused(
                f"Prefect has a schedule that cannot be read: {value.get('schedule')!r}",
                fix="Install the version of Prefect that the server has",
            ) from error

    def last_until(self, moment: datetime) -> datetime | None:
        """Return the last time that is not after `moment`, in UTC, or `None` before the first."""
        schedule = self.schedule
        if isinstance(schedule, CronSchedule):
            return _last_of_cron(schedule, moment)
        if isinstance(schedule, RRuleSchedule):
            found = schedule.to_rrule().before(moment, inc=True)
            # A time that the clock skips comes after later ones.
            return None if found is None else _last(schedule, found.astimezone(UTC) - CLOCK_CHANGE, moment)
        if schedule.interval.days:
            return _last(schedule, moment - schedule.interval - CLOCK_CHANGE, moment)
        # The anchor is a subclass of datetime with an arithmetic of its own.
        anchor = datetime.fromisoformat(schedule.anchor_date.isoformat())
        return moment.astimezone(UTC) - (moment - anchor) % schedule.interval

    def before(self, time: datetime) -> datetime | None:
        """Return the time before `time`, which is one of the schedule's, in UTC, or `None` if it is the first."""
        schedule = self.schedule
        if not isinstance(schedule, IntervalSchedule) or timedelta(schedule.interval.days) in (
            timedelta(),
            schedule.interval,
        ):
            return self.last_until(time - _INSTANT)
        # Prefect steps from each time to the next: whole days on the wall clock, the rest in real time.
        days = timedelta(schedule.interval.days)
        wall = time.astimezone(ZoneInfo(schedule.timezone or "UTC")) - days
        return wall.astimezone(UTC) - (schedule.interval - days)

    def has(self, time: datetime) -> bool:
        """Return True if `time` is one of the schedule's."""
        # When clocks change, the times of Prefect's intervals of days depend on the time from which it counts.
        follows_clock = isinstance(self.schedule, IntervalSchedule) and self.schedule.interval.days > 0
        reach = CLOCK_CHANGE if follows_clock else timedelta(0)
        return bool(schedule_dates(self.schedule, time - reach, time + reach))


def _last_of_cron(schedule: CronSchedule, end: datetime) -> datetime | None:
    """Return the last time until `end`. Prefect only counts forward, so try longer and longer spans."""
    span = _FIRST_SPAN
    while span < _LAST_SPAN:
        found = _last(schedule, end - span, end)
        if found is not None:
            return found
        span *= 4
    return None


def _last(schedule: SCHEDULE_TYPES, start: datetime, end: datetime) -> datetime | None:
    found = None
    # Prefect returns at most a thousand times at once.
    while dates := schedule_dates(schedule, start, end):
        found, start = dates[-1], dates[-1] + _INSTANT
    return found
