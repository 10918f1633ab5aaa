"""What is in the format of scenarios, also as flows, and what is refused with file, scenario and step."""

from typing import Any

import pytest

import assetflow
from assetflow import Asset, flow
from assetflow.core.simulate import read_scenario, simulate
from assetflow.errors import InvalidScenario

EVENT = {"event": "s3://b/a"}


def scenario(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"name": "s", "consumers": {}, "steps": list(steps)} | more


@pytest.mark.parametrize(
    "step",
    [
        {"explode": True},
        {},
        {"tick": True, "pause": "c"},
        {"event": {"url": "s3://b/a"}},
        {"event": "s3://b/a", "partiton_key": "k"},
        {"task": {"outlets": ["s3://b/a"], "state": "sleeping"}},
        {"task": {"outlets": ["s3://b/a"], "emit": [{"extra": {}}]}},
        {"alias_event": {"alias": "x"}},
        {"pause": ["c"]},
        {"redeploy": {"c": {"none": []}}},
        {"get_queued": {"asset": "s3://b/a", "before": "yesterday"}},
        {"advance": "1h"},
        {"tick": True, "at": "2025-12-31T00:00:00Z"},
        {"observe": "s3://b/a"},
        {"backfill": {"asset": "s3://b/a", "down": "yes"}},
        {"finish": "c", "state": "skipped"},
        "tick",
    ],
    ids=repr,
)
def test_step_is_refused_with_its_place(step: Any) -> None:
    with pytest.raises(InvalidScenario, match=r"^file\.json: scenario 's', step 1") as caught:
        read_scenario(scenario(EVENT, step), "file.json")
    assert caught.value.message


@pytest.mark.parametrize(
    "consumer",
    [
        5,
        {"nor": ["s3://b/a"]},
        {"all": "s3://b/a"},
        {"all": [{"partitioned": {"assets": "s3://b/a"}}]},
        {"asset_or_time": {"assets": "s3://b/a"}},
        {"partitioned": {"assets": "s3://b/a", "default_mapper": "fortnight"}},
        {"partitioned": {"assets": "s3://b/a", "default_mapper": {"chain": ["day", {"moon": 1}]}}},
        {"partitioned": {"assets": "s3://b/a", "mappers": [[{"mapper": "x"}, "day"]]}},
        {"schedule": "s3://b/a", "paused": "yes"},
        {"schedule": "s3://b/a", "while_paused": "dance"},
        {"schedule": "s3://b/a", "colaesce": True},
    ],
    ids=repr,
)
def test_consumer_is_refused_with_its_name(consumer: Any) -> None:
    with pytest.raises(InvalidScenario, match="scenario 's', consumer 'c'"):
        read_scenario(scenario(consumers={"c": consumer}))


def test_place_inside_a_step_and_its_keys_are_named() -> None:
    step = {"task": {"outlets": ["s3://b/a"], "emit": [{"asset": "s3://b/a", "key": "k"}]}}
    with pytest.raises(InvalidScenario, match=r"step 1, task, emit\[0\]: unknown key 'key'") as caught:
        read_scenario(scenario(EVENT, step))
    assert caught.value.fix == "Known are asset, alias, extra, partition_keys"


@pytest.mark.parametrize("takes", [0, 0.000001])
def test_flows_that_keep_each_other_running_are_refused_by_name(takes: float) -> None:
    circle = {
        "a": {"schedule": "b", "makes": ["a"], "takes": takes},
        "b": {"schedule": "a", "makes": ["b"], "takes": takes},
    }
    with pytest.raises(InvalidScenario, match=r"keep each other running: (a → b → a|b → a → b)\."):
        simulate(scenario({"event": "a"}, {"advance": 3600}, consumers=circle, passes="live"))


orders, customers = Asset("s3://shop/orders", name="orders"), Asset("s3://shop/customers")


@flow(schedule=[orders, customers])
def report() -> None:
    raise AssertionError


@flow(schedule=Asset.ref(name="orders"))
def by_name() -> None: ...


def test_flows_run_on_the_updates_of_assets() -> None:
    answer: Any = assetflow.simulate([report, by_name], [orders, customers, {"event": orders, "extra": {"rows": 3}}])
    assert [(run["step"], run["consumer"]) for run in answer["runs"]] == [(0, "by-name"), (1, "report"), (2, "by-name")]
    assert [each["step"] for each in answer["queued"]["report"]] == [2]


@pytest.mark.parametrize("wrong", [report.fn, flow(lambda: None), "report", None])
def test_what_is_not_a_flow_with_a_schedule_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidScenario, match="is not a flow with a schedule"):
        assetflow.simulate([wrong], [])


def test_a_scenario_takes_no_steps_beside_its_own() -> None:
    with pytest.raises(InvalidScenario, match="steps of its own"):
        assetflow.simulate({"name": "s", "consumers": {}, "steps": []}, [orders])
