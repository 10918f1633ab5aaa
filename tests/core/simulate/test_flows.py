"""`simulate` takes flows: their schedules count, and their code does not run."""

from typing import Any

import pytest

from assetflow import Asset, AssetAndTimeSchedule, flow, simulate
from assetflow.errors import InvalidScenario
from assetflow.timetables import CronTriggerTimetable

orders, customers = Asset("s3://shop/orders", name="orders"), Asset("s3://shop/customers")


@flow(schedule=[orders, customers])
def report() -> None:
    raise AssertionError


@flow(schedule=Asset.ref(name="orders"))
def by_name() -> None: ...


@flow(schedule=AssetAndTimeSchedule(timetable=CronTriggerTimetable("0 6 * * *", timezone="UTC"), assets=orders))
def morning() -> None: ...


def test_flows_run_on_the_updates_of_assets() -> None:
    answer: Any = simulate([report, by_name], [orders, customers, {"event": orders, "extra": {"rows": 3}}])
    assert [(run["step"], run["consumer"]) for run in answer["runs"]] == [(0, "by-name"), (1, "report"), (2, "by-name")]
    assert [each["step"] for each in answer["queued"]["report"]] == [2]


def test_time_acts_between_the_steps() -> None:
    answer: Any = simulate([morning], [orders, {"advance": 86_400}])
    assert [run["time"][11:16] for run in answer["runs"]] == ["06:00"]


@pytest.mark.parametrize("wrong", [report.fn, flow(lambda: None), "report", None])
def test_what_is_not_a_flow_with_a_schedule_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidScenario, match="is not a flow with a schedule"):
        simulate([wrong], [])


def test_a_scenario_takes_no_steps_beside_its_own() -> None:
    with pytest.raises(InvalidScenario, match="steps of its own"):
        simulate({"name": "s", "consumers": {}, "steps": []}, [orders])


def test_a_step_that_is_wrong_is_named() -> None:
    with pytest.raises(InvalidScenario, match="steps, step 1"):
        simulate([report], [orders, {"evnt": "x"}])
