"""`simulate` takes flows: their schedules count, and their code does not run."""

from typing import Any

import pytest

from assetflow import Asset, flow, simulate
from assetflow.errors import InvalidScenario

orders, customers = Asset("s3://shop/orders", name="orders"), Asset("s3://shop/customers")


@flow(schedule=[orders, customers])
def report() -> None:
    raise AssertionError


@flow(schedule=Asset.ref(name="orders"))
def by_name() -> None: ...


def test_flows_run_on_the_updates_of_assets() -> None:
    answer: Any = simulate([report, by_name], [orders, customers, {"event": orders, "extra": {"rows": 3}}])
    assert [(run["step"], run["consumer"]) for run in answer["runs"]] == [(0, "by-name"), (1, "report"), (2, "by-name")]
    assert [each["step"] for each in answer["queued"]["report"]] == [2]


@pytest.mark.parametrize("wrong", [report.fn, flow(lambda: None), "report", None])
def test_what_is_not_a_flow_with_a_schedule_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidScenario, match="is not a flow with a schedule"):
        simulate([wrong], [])


def test_a_scenario_takes_no_steps_beside_its_own() -> None:
    with pytest.raises(InvalidScenario, match="steps of its own"):
        simulate({"name": "s", "consumers": {}, "steps": []}, [orders])
