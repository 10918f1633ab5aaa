"""The time part of schedules on a real Prefect server: upcoming runs that follow the deployment."""

from datetime import UTC, datetime
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.states import Scheduled

from assetflow import Asset, AssetOrTimeSchedule, flow, task
from assetflow.core.time.timetables import Timetable
from assetflow.prefect_io.names import TIME_TAG
from assetflow.testing import Harness
from assetflow.timetables import CronTriggerTimetable

pytestmark = [pytest.mark.long, pytest.mark.prefect]

ORDERS, REPORT = Asset("s3://times/orders"), Asset("s3://times/report")
MIDNIGHT = CronTriggerTimetable("0 0 * * *", timezone="Europe/Berlin")
HOURLY = CronTriggerTimetable("0 * * * *")


@task(outlets=[REPORT])
def write_report() -> None: ...


@flow(schedule=AssetOrTimeSchedule(timetable=MIDNIGHT, assets=ORDERS))
async def report(day: str = "today") -> None:  # noqa: ARG001
    write_report()


@flow(schedule=HOURLY)
async def load(rows: int = 1) -> None:  # noqa: ARG001
    write_report()


def upcoming(name: str) -> list[FlowRun]:
    """The Scheduled runs of a deployment, in the order of their times."""
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(name)
        runs = client.read_flow_runs(limit=200)
    found = [run for run in runs if run.deployment_id == deployment.id and run.state_name == "Scheduled"]
    return sorted(found, key=lambda run: str(run.expected_start_time))


def are_first(runs: list[FlowRun], timetable: Timetable, number: int, since: datetime) -> bool:
    """Return True if runs have the first times of a timetable, of which one may have passed since then."""
    return times_of(runs) in [first_times(timetable, number, after) for after in (since, datetime.now(UTC))]


def first_times(timetable: Timetable, number: int, after: datetime) -> list[datetime]:
    found = [timetable.next_after(after)]
    while len(found) < number:
        assert found[-1] is not None
        found.append(timetable.next_after(found[-1].time))
    return [tick.time for tick in found if tick is not None]


def times_of(runs: list[FlowRun]) -> list[datetime]:
    return [run.expected_start_time for run in runs if run.expected_start_time is not None]


def now(run: FlowRun) -> FlowRun:
    """The run, put off to this moment by a person, so that it need not be waited for."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(run.id, Scheduled(scheduled_time=datetime.now(UTC)), force=True)
        return client.read_flow_run(run.id)


@pytest.mark.rule("6.1")
def test_times_are_upcoming_runs_beside_those_of_updates(h: Harness) -> None:
    began = datetime.now(UTC)
    name = h.deploy(report)
    h.settle()
    runs = upcoming(name)
    assert are_first(runs, MIDNIGHT, 3, began)
    first = runs[0]
    assert {"assetflow", TIME_TAG, "auto-scheduled"} <= set(first.tags)
    assert first.created_by is not None
    assert first.created_by.type == "AUTOMATION"
    assert "00:00" in (first.created_by.display_value or "")
    assert first.context["assetflow"]["tick"] == times_of(runs)[0].isoformat()
    assert h.runs(report) == h.queued(report) == []
    h.emit(ORDERS)
    assert [run.uris for run in h.settle().runs(report)] == [[ORDERS.uri]]
    assert [run.id for run in upcoming(name)] == [run.id for run in runs]


@pytest.mark.rule("6.1")
def test_a_pause_of_the_automation_or_the_deployment_withdraws_the_times(h: Harness) -> None:
    began = datetime.now(UTC)
    name = h.deploy(load)
    h.settle()
    with get_client(sync_client=True) as client:
        (automation,) = [each for each in automations_of(client) if each["name"].startswith("load/")]
        assert automation["name"] == f"load/test runs {HOURLY.describe()}"
        switch(client, automation["id"], enabled=False)
        assert upcoming_after(h, name) == []
        switch(client, automation["id"], enabled=True)
        assert are_first(upcoming_after(h, name), HOURLY, 24, began)
        deployment = client.read_deployment_by_name(name)
        client.pause_deployment(deployment.id)
        assert upcoming_after(h, name) == []
        client.resume_deployment(deployment.id)
    assert are_first(upcoming_after(h, name), HOURLY, 24, began)


def upcoming_after(h: Harness, name: str) -> list[FlowRun]:
    h.settle()
    return upcoming(name)


def automations_of(client: Any) -> list[dict[str, Any]]:
    return client.request("POST", "/automations/filter", json={}).json()


def switch(client: Any, automation: str, *, enabled: bool) -> None:
    client.request("PATCH", "/automations/{id}", path_params={"id": automation}, json={"enabled": enabled})
