"""The times of Prefect's schedules, looked at backwards: what Prefect itself would have started before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from assetflow.errors import PrefectRefused
from assetflow.prefect_io.internals import schedule_dates
from assetflow.prefect_io.schedule_times import DeploymentSchedule

NEW_YORK, BERLIN, LORD_HOWE = "America/New_York", "Europe/Berlin", "Australia/Lord_Howe"
ANCHOR = "2026-01-01T14:00:00Z"


def made(**schedule: Any) -> DeploymentSchedule:
    return DeploymentSchedule.from_json({"id": str(uuid4()), "schedule": schedule})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


SCHEDULES: dict[str, dict[str, Any]] = {
    "every minute": {"cron": "* * * * *", "timezone": "UTC"},
    "hourly": {"cron": "0 * * * *", "timezone": NEW_YORK},
    "a time that is skipped and repeated": {"cron": "30 1,2 * * *", "timezone": BERLIN},
    "either day": {"cron": "0 6 1 * 1", "timezone": BERLIN},
    "both days": {"cron": "0 6 8-14 * 1", "timezone": BERLIN, "day_or": False},
    "minutes of one day in a year": {"cron": "* 0-20 29 3 *", "timezone": LORD_HOWE},
    "every 90 minutes": {"interval": 5400, "anchor_date": ANCHOR, "timezone": NEW_YORK},
    "every day": {"interval": 86400, "anchor_date": ANCHOR, "timezone": NEW_YORK},
    "every day and a half": {"interval": 129600, "anchor_date": ANCHOR, "timezone": BERLIN},
    "every second": {"interval": 1, "anchor_date": ANCHOR, "timezone": "UTC"},
    "workdays": {"rrule": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9", "timezone": NEW_YORK},
    "two times with an exception": {
        "rrule": "DTSTART:20260101T060000\nRRULE:FREQ=DAILY;INTERVAL=2\nEXDATE:20260330T060000",
        "timezone": BERLIN,
    },
}


@pytest.mark.parametrize("around", ["2026-03-08T07:00", "2026-03-29T01:00", "2026-11-01T06:00", "2026-10-25T01:00"])
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_the_time_before_is_the_one_that_prefect_started_before(schedule: dict[str, Any], around: str) -> None:
    times = made(**schedule)
    forward = schedule_dates(times.schedule, at(around) - timedelta(days=4), at(around) + timedelta(days=4))
    middle = sum(time <= at(around) for time in forward)
    forward = forward[max(0, middle - 12) : middle + 12]
    assert [times.before(later) for later in forward[1:]] == forward[:-1]
    assert all(times.has(time) for time in forward[:3])
    assert not times.has(at(around) + timedelta(microseconds=1))


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_the_last_time_until_a_moment_is_at_or_before_it(schedule: dict[str, Any]) -> None:
    times, moment = made(**schedule), at("2026-06-03T12:34:56.5")
    last = times.last_until(moment)
    assert last is not None
    assert last <= moment
    assert times.last_until(last) == last
    assert schedule_dates(times.schedule, last + timedelta(microseconds=1), moment) == []


def test_before_the_first_time_there_is_none() -> None:
    times = made(rrule="DTSTART:20260101T060000\nRRULE:FREQ=DAILY", timezone="UTC")
    assert times.last_until(at("2026-01-01T05:59")) is None
    assert times.before(at("2026-01-01T06:00")) is None


def test_a_year_with_a_29_february_is_found() -> None:
    assert made(cron="0 0 29 2 *", timezone="UTC").before(at("2028-02-29T00:00")) == at("2024-02-29T00:00")


@pytest.mark.parametrize("schedule", [{}, None, {"cron": "every day"}, {"solar": "noon"}])
def test_a_schedule_that_this_prefect_does_not_know_is_refused(schedule: Any) -> None:
    with pytest.raises(PrefectRefused, match="cannot be read"):
        DeploymentSchedule.from_json({"id": str(uuid4()), "schedule": schedule})
