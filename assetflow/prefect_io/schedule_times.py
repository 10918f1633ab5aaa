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
from assetflow.prefect_io.internals import schedule_dates
from assetflow.prefect_io.undocumented import needed_for

with needed_for("A data interval"):
    from prefect.server.schemas.schedules import SCHEDULE_TYPES, CronSchedule, IntervalSchedule, RRuleSchedule

_INSTANT = timedelta(microseconds=1)
_FIRST_SPAN = timedelta(hours=1)
_LAST_SPAN = timedelta(days=366 * 50)
# Two times that are some days apart on the wall clock may be further apart in real time.
_CLOCK_CHANGE = timedelta(hours=3)

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
        if isinstance(self.schedule, RRuleSchedule):
            found = self.schedule.to_rrule().before(moment, inc=True)
            return None if found is None else found.astimezone(UTC)
        if isinstance(self.schedule, IntervalSchedule):
            return _last(self.schedule, moment - self.schedule.interval - _CLOCK_CHANGE, moment)
        return _last_of_cron(self.schedule, moment)

    def before(self, time: datetime) -> datetime | None:
        """Return the time before `time`, which is one of the schedule's, in UTC, or `None` if it is the first."""
        if not isinstance(self.schedule, IntervalSchedule):
            return self.last_until(time - _INSTANT)
        # Prefect steps from each time to the next: whole days on the wall clock, the rest in real time.
        days = timedelta(days=self.schedule.interval.days)
        if days:
            time = (time.astimezone(ZoneInfo(self.schedule.timezone or "UTC")) - days).astimezone(UTC)
        return time - (self.schedule.interval - days)

    def has(self, time: datetime) -> bool:
        """Return True if `time` is one of the schedule's."""
        # When clocks change, the times of Prefect's intervals of days depend on the time from which it counts.
        follows_clock = isinstance(self.schedule, IntervalSchedule) and self.schedule.interval.days > 0
        reach = _CLOCK_CHANGE if follows_clock else timedelta(0)
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
