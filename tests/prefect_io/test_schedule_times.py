"""The times of Prefect's schedules, looked at backwards: what Prefect itself would have started before."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from assetflow.errors import PrefectRefused
from assetflow.prefect_io.internals import schedule_dates
from assetflow.prefect_io.schedule_times import DeploymentSchedule

ANCHOR = "2026-01-01T14:00:00Z"


def made(**schedule: Any) -> DeploymentSchedule:
    return DeploymentSchedule.from_json({"id": str(uuid4()), "schedule": schedule})


@pytest.mark.parametrize("schedule", [{}, None, {"cron": "every day"}, {"solar": "noon"}])
def test_a_schedule_that_this_prefect_does_not_know_is_refused(schedule: Any) -> None:
    with pytest.raises(PrefectRefused, match="cannot be read"):
        DeploymentSchedule.from_json({"id": str(uuid4()), "schedule": schedule})


# Changes of an hour in both hemispheres and at midnight, of half an hour, and of two.
ZONES = ("Europe/Zurich", "America/Santiago", "Australia/Lord_Howe", "Antarctica/Troll")
# Intervals of days and hours have no times of their own around a change: they depend on when Prefect counts them.
AROUND_CHANGES: dict[str, dict[str, Any]] = {
    "a cron in the night": {"cron": "30 2 * * *"},
    "a cron at several hours": {"cron": "15 0,1,3 * * *"},
    "a cron each hour": {"cron": "0 * * * *"},
    "a cron each 20 minutes": {"cron": "*/20 * * * *"},
    "each hour": {"interval": 3600, "anchor_date": "2026-01-01T00:45:00Z"},
    "each quarter": {"interval": 900, "anchor_date": ANCHOR},
    "each 90 minutes": {"interval": 5400, "anchor_date": ANCHOR},
    "each day": {"interval": 86400, "anchor_date": "2023-12-01T01:15:00Z"},
    "each week": {"interval": 604800, "anchor_date": "2023-03-26T01:30:00Z"},
    "a rule of days": {"rrule": "DTSTART:20260301T000000\nRRULE:FREQ=DAILY;BYHOUR=0,2,3;BYMINUTE=30"},
}


def changes(zone: str) -> list[datetime]:
    """The instants of 2026, to the half hour, at which a clock is set forward or back."""
    step, zone_info = timedelta(minutes=30), ZoneInfo(zone)
    found, moment = [], datetime(2026, 1, 1, tzinfo=UTC)
    while moment.year == 2026:
        day = moment + timedelta(days=1)
        if moment.astimezone(zone_info).utcoffset() != day.astimezone(zone_info).utcoffset():
            offset, change = moment.astimezone(zone_info).utcoffset(), moment
            while change.astimezone(zone_info).utcoffset() == offset:
                change += step
            found.append(change)
        moment = day
    return found


def started(schedule: Any, change: datetime) -> list[datetime]:
    """The times that Prefect gives around a change of the clock, whenever it counts anew.

    From one start it gives a repeated time once only, before Python 3.13, so the starts are the times themselves, too.
    """
    until = change + timedelta(hours=3)
    starts = [change - timedelta(days=15), *(change + timedelta(minutes=15 * step) for step in range(-12, 12))]
    return sorted({time for start in starts for time in schedule_dates(schedule, start, until)})


@pytest.mark.rule("7.3")
@pytest.mark.parametrize("kind", AROUND_CHANGES)
def test_an_interval_around_a_change_of_the_clock_is_between_times_that_prefect_starts(kind: str) -> None:
    for zone in ZONES:
        times = made(**AROUND_CHANGES[kind], timezone=zone)
        for change in changes(zone):
            known = started(times.schedule, change)
            for minutes in (-65, -10, 5, 25, 50, 70, 130):
                moment = change + timedelta(minutes=minutes)
                end = times.last_until(moment)
                assert end is not None
                before = [time for time in known if time <= moment]
                assert [times.before(end), end] == before[-2:], (zone, moment)
