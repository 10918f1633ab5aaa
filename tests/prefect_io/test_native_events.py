"""What the evaluator tells Prefect in its own asset events, which nobody counts. Contract 2.10."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest
from prefect.events import Event

from assetflow.core.rules.ended_runs import FailedForGood
from assetflow.core.values.announcements import Materialized
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, SourceFlowRun, SourceTaskRun
from assetflow.prefect_io.own_events import failed_with_assets, is_key, materialized
from assetflow.prefect_io.recordings import learned_from_prefect_event, recording_from_prefect_event
from tests.ledger.making import NOW
from tests.ledger.read.test_ended_runs import ended

pytestmark = pytest.mark.rule("2.10")
ORDERS = Asset("s3://shop/orders", description="All orders")
RUN = SourceFlowRun(UUID(int=1), "brave-fox", UUID(int=2), "shop", UUID(int=3), "daily")
ORIGIN = Origin("task", SourceTaskRun(UUID(int=4)), RUN)
MADE = AssetEvent(UUID(int=5), ORDERS, NOW, ORIGIN, metrics={"rows": 3}, partition_key="2026-01-01", data_version="7")


def told(**changes: Any) -> list[Any]:
    return materialized(Materialized(1, replace(MADE, **changes), ("s3://shop/raw", ORDERS.uri)))


def test_an_update_is_told_with_its_inputs_its_maker_and_what_was_measured() -> None:
    (event,) = told()
    assert Event.model_validate(event).resource["prefect.asset.description"] == "All orders"
    related = {each["prefect.resource.role"]: each["prefect.resource.id"] for each in event["related"]}
    assert (related.pop("asset"), related.pop("asset-materialized-by")) == ("s3://shop/raw", "spark")
    assert [*related] == ["flow-run", "flow", "deployment"]
    assert event["payload"] == {"rows": 3, "assetflow": {"partition_key": "2026-01-01", "data_version": "7"}}
    assert told()[0]["id"] == event["id"] != told(id=UUID(int=6))[0]["id"]


def test_nobody_counts_it_or_learns_from_it() -> None:
    for event in (*told(), *failed_with_assets(FailedForGood(ended(UUID(int=3), 1), not_made=[ORDERS.uri]))):
        assert recording_from_prefect_event(event) is None
        assert learned_from_prefect_event(event) is None


def test_a_failed_run_is_told_for_each_outlet_that_it_did_not_update() -> None:
    failed = FailedForGood(ended(UUID(int=3), 1, flow="shop/daily"), not_made=[ORDERS.uri, "orders"])
    own, *others = cast("list[Any]", failed_with_assets(failed))
    assert own["event"] == "assetflow.run.failed"
    named = [(each["event"], each["resource"]["prefect.resource.id"]) for each in others]
    assert named == [("prefect.asset.materialization.failed", ORDERS.uri)]


@pytest.mark.parametrize(
    ("uri", "valid"),
    [("s3://shop/orders", True), ("mysql://db:3306/s/t", True), ("orders", False), ("s3://b/a?x=1", False)],
)
def test_what_prefect_does_not_take_as_a_key_is_not_told(uri: str, valid: bool) -> None:
    assert is_key(uri) is valid
    assert bool(told(asset=Asset(uri))) is valid
