"""Asset events and decisions as Prefect's events: what the evaluator tells, and what it learns. Contract 2.9, 2.10."""

from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest
from prefect.events import Event

from assetflow.core.graph.lineage import Learned
from assetflow.core.rules.ended_runs import FailedForGood
from assetflow.core.values.announcements import Materialized
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, SourceFlowRun, SourceTaskRun
from assetflow.core.values.keeping import Cause
from assetflow.errors import AssetflowError
from assetflow.prefect_io.own_events import CAUSES_NAMED, decision_made, failed_with_assets, is_key, materialized
from assetflow.prefect_io.recordings import learned_from_prefect_event, recording_from_prefect_event
from tests.ledger.making import NOW
from tests.ledger.read.test_ended_runs import ended

MADE, READ = Asset("s3://lake/made"), Asset("s3://lake/read")
DEPLOYMENT, TASK_RUN = UUID(int=3), UUID(int=4)


def related(role: str, number: object, name: str = "") -> dict[str, str]:
    return {"prefect.resource.id": str(number), "prefect.resource.role": role, "prefect.resource.name": name}


RUN = [
    related("flow-run", f"prefect.flow-run.{UUID(int=1)}", "brave-fox"),
    related("flow", f"prefect.flow.{UUID(int=2)}", "dbt"),
    related("deployment", f"prefect.deployment.{DEPLOYMENT}", "nightly"),
    related("task-run", f"prefect.task-run.{TASK_RUN}", "model"),
]
INPUTS = [related("asset", READ.uri), related("asset-materialized-by", "dbt")]


def native(what: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": str(UUID(int=8)),
        "occurred": "2026-01-02T03:04:05Z",
        "event": f"prefect.asset.{what}",
        "resource": {"prefect.resource.id": MADE.uri},
        "related": [*INPUTS, *RUN],
        "payload": {},
        **changes,
    }


@pytest.mark.rule("2.9")
@pytest.mark.parametrize(
    ("what", "made", "read"),
    [
        ("materialization.succeeded", (MADE,), (READ,)),
        ("materialization.failed", (MADE,), (READ,)),
        ("referenced", (), (MADE,)),
    ],
)
def test_a_deployment_makes_and_reads_what_events_name(
    what: str, made: tuple[Asset, ...], read: tuple[Asset, ...]
) -> None:
    assert learned_from_prefect_event(native(what)) == Learned(DEPLOYMENT, "dbt/nightly", made, read)
    assert learned_from_prefect_event(native(what, related=INPUTS)) is None


@pytest.mark.rule("2.9")
def test_an_update_has_its_tool_its_inputs_and_what_describes_the_asset() -> None:
    properties = {"description": "Orders", "url": "https://wiki/orders", "owners": '["ann"]'}
    resource = {"prefect.resource.id": MADE.uri, **{f"prefect.asset.{name}": it for name, it in properties.items()}}
    found = recording_from_prefect_event(native("materialization.succeeded", resource=resource))
    assert found is not None
    (event,) = found.events
    assert (event.origin.by, list(event.read)) == ("dbt", [READ.uri])
    assert event.asset.extra == Asset("x", description="Orders", url="https://wiki/orders", owners=["ann"]).extra


@pytest.mark.rule("2.9")
@pytest.mark.parametrize("what", ["materialization.succeeded", "materialization.failed", "referenced"])
@pytest.mark.parametrize(
    "broken",
    [
        {"resource": {}},
        {"resource": {"prefect.resource.id": 3}},
        {"resource": {"prefect.resource.id": "s3://"}},
        {"related": [related("asset", " "), *RUN]},
        {"related": [{"prefect.resource.role": "asset"}, *RUN]},
    ],
)
def test_bad_events_are_refused(what: str, broken: dict[str, Any]) -> None:
    with pytest.raises(AssetflowError):
        learned_from_prefect_event(native(what, **broken))


@pytest.mark.parametrize("bad", [{"description": 3}, {"url": "\0"}, {"owners": "ann"}, {"owners": ["ann", 3]}])
def test_rule_1_2_what_describes_an_asset_is_text(bad: dict[str, Any]) -> None:
    with pytest.raises(AssetflowError, match="lake/made"):
        Asset("s3://lake/made", **bad)


ORDERS = Asset("s3://shop/orders", description="All orders")
OUR_RUN = SourceFlowRun(UUID(int=1), "brave-fox", UUID(int=2), "shop", UUID(int=3), "daily")
ORIGIN = Origin("task", SourceTaskRun(UUID(int=4)), OUR_RUN)
UPDATE = AssetEvent(UUID(int=5), ORDERS, NOW, ORIGIN, metrics={"rows": 3}, partition_key="2026-01-01", data_version="7")


def told(**changes: Any) -> list[Any]:
    return materialized(Materialized(1, replace(UPDATE, **changes), ("s3://shop/raw", ORDERS.uri)))


@pytest.mark.rule("2.10")
def test_an_update_is_told_with_its_inputs_its_maker_and_what_was_measured() -> None:
    (event,) = told()
    assert Event.model_validate(event).resource["prefect.asset.description"] == "All orders"
    related = {each["prefect.resource.role"]: each["prefect.resource.id"] for each in event["related"]}
    assert (related.pop("asset"), related.pop("asset-materialized-by")) == ("s3://shop/raw", "spark")
    assert [*related] == ["flow-run", "flow", "deployment"]
    assert event["payload"] == {"rows": 3, "assetflow": {"partition_key": "2026-01-01", "data_version": "7"}}
    assert told()[0]["id"] == event["id"] != told(id=UUID(int=6))[0]["id"]


@pytest.mark.rule("2.10")
def test_nobody_counts_it_or_learns_from_it() -> None:
    for event in (*told(), *failed_with_assets(FailedForGood(ended(UUID(int=3), 1), not_made=[ORDERS.uri]))):
        assert recording_from_prefect_event(event) is None
        assert learned_from_prefect_event(event) is None


@pytest.mark.rule("2.10")
def test_a_failed_run_is_told_for_each_outlet_that_it_did_not_update() -> None:
    failed = FailedForGood(ended(UUID(int=3), 1, flow="shop/daily"), not_made=[ORDERS.uri, "orders"])
    own, *others = cast("list[Any]", failed_with_assets(failed))
    assert own["event"] == "assetflow.run.failed"
    named = [(each["event"], each["resource"]["prefect.resource.id"]) for each in others]
    assert named == [("prefect.asset.materialization.failed", ORDERS.uri)]


@pytest.mark.rule("2.10")
@pytest.mark.parametrize(
    ("uri", "valid"),
    [("s3://shop/orders", True), ("mysql://db:3306/s/t", True), ("orders", False), ("s3://b/a?x=1", False)],
)
def test_what_prefect_does_not_take_as_a_key_is_not_told(uri: str, valid: bool) -> None:
    assert is_key(uri) is valid
    assert bool(told(asset=Asset(uri))) is valid


def payload(*because: Cause) -> dict[str, object]:
    decision = Decision(UUID(int=5), 1, UUID(int=6), "k", (), NOW, "eager", because=because)
    return decision_made(decision, "core/main", None, UUID(int=7), NOW.isoformat())["payload"]


def test_rule_8_5_the_event_says_why_an_eager_flow_was_asked_for_the_run() -> None:
    raw = {"kind": "data", "uri": "s3://shop/raw", "partition_key": "k"}
    found = payload(Cause("data", "s3://shop/raw", "k"), Cause("code"))
    assert found["because"] == [raw, {"kind": "code", "uri": None, "partition_key": None}]
    found = payload(*(Cause("data", f"s3://shop/{number}") for number in range(CAUSES_NAMED + 5)))
    assert isinstance(found["because"], list)
    assert len(found["because"]) == CAUSES_NAMED
    assert "because" not in payload()
