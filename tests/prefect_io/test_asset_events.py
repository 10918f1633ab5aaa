"""What Prefect's own asset events say beside the update. Contract 2.9."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from assetflow.core.graph.lineage import Learned
from assetflow.core.values.assets import Asset
from assetflow.errors import AssetflowError
from assetflow.prefect_io.recordings import learned_from_prefect_event, recording_from_prefect_event

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
def test_a_deployment_makes_and_reads_what_its_events_name(
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
