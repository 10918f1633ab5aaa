"""Runs that Prefect's own schedules make: their updates carry the interval from the time before to their own (7.3)."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import prefect
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.client.schemas.objects import FlowRun
from prefect.schedules import Cron, Interval, RRule

from assetflow import flow, task
from tests.environment.prefect_server import PrefectServer
from tests.examples.upcoming import execute
from tests.integration.recorded import fresh, new_events

pytestmark = [pytest.mark.long, pytest.mark.prefect]

TABLE = fresh("table")
BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
SCHEDULES = [
    Cron("0 6 * * *", timezone="Europe/Berlin", slug="cron"),
    Interval(timedelta(minutes=90), anchor_date=datetime(2026, 1, 1, tzinfo=UTC), slug="interval"),
    RRule("FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", timezone="America/New_York", slug="rrule"),
]


@task(outlets=[TABLE])
def load() -> None: ...


@prefect.flow
async def below() -> None:
    load()


@flow
async def scheduled() -> None:
    load()
    await below()


def runs_of(deployment: UUID, server: PrefectServer) -> dict[str, FlowRun]:
    """Let Prefect make the runs of the schedules now, and return the first one of each by the schedule's slug."""
    with server.http() as http:
        http.post(f"/deployments/{deployment}/schedule", json={}).raise_for_status()
    with get_client(sync_client=True) as client:
        slugs = {each.id: cast(str, each.slug) for each in client.read_deployment(deployment).schedules}
        made = client.read_flow_runs(deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])))
    found: dict[str, FlowRun] = {}
    for run in sorted(made, key=lambda run: cast(datetime, run.expected_start_time)):
        assert run.created_by is not None
        found.setdefault(slugs[cast(UUID, run.created_by.id)], run)
    return found


def a_day_before(time: datetime, zone: ZoneInfo) -> datetime:
    return (datetime.fromisoformat(time.isoformat()).astimezone(zone) - timedelta(days=1)).astimezone(UTC)


@pytest.mark.rule("7.3")
def test_runs_of_cron_interval_and_rrule_hand_on_their_interval(prefect_here: PrefectServer) -> None:
    deployment = cast(Any, scheduled.to_deployment(name="three-schedules", schedules=SCHEDULES)).apply()
    try:
        runs = runs_of(deployment, prefect_here)
        for slug, before in {
            "cron": lambda time: a_day_before(time, BERLIN),
            "interval": lambda time: time - timedelta(minutes=90),
            "rrule": lambda time: a_day_before(time, NEW_YORK),
        }.items():
            own = cast(datetime, runs[slug].expected_start_time)
            with new_events(TABLE) as events:
                execute(scheduled, runs[slug])
            found = [event.source_flow_run for event in events]
            assert [run.flow_name for run in found if run] == ["scheduled", "below"]
            for run in found:
                assert run is not None
                assert (run.data_interval_start, run.data_interval_end) == (before(own), own), slug
                assert run.scheduled_time == own
    finally:
        with get_client(sync_client=True) as client:
            client.delete_deployment(deployment)
