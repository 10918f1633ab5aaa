"""The exact bodies that Prefect gets for each kind of schedule: automations, the runs of decisions with contexts."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.partitions import StartOfDayMapper
from assetflow.core.rules.state.state import decision_id
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, SourceFlowRun
from assetflow.core.values.schedule_values import AssetOrTimeSchedule, PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import RunContext, run_context_from_json, run_context_to_json
from assetflow.errors import InvalidEvent
from assetflow.prefect_io.automations import automation_for
from assetflow.prefect_io.flow_runs import run_request
from tests.golden import agrees

DEPLOYMENT = UUID("11111111-1111-4111-8111-111111111111")
NOW = datetime(2026, 1, 1, tzinfo=UTC)

ORDERS = Asset("s3://shop/orders", name="orders")
CUSTOMERS = Asset("s3://shop/customers")
PARTITIONED = PartitionedAssetTimetable(assets=ORDERS, default_partition_mapper=StartOfDayMapper())
SCHEDULES: dict[str, object] = {
    "asset": ORDERS,
    "or": ORDERS | CUSTOMERS,
    "and": ORDERS & CUSTOMERS,
    "nested": ORDERS | (CUSTOMERS & Asset("s3://shop/returns")),
    "alias": AssetAlias("outputs"),
    "asset_or_time": AssetOrTimeSchedule(timetable="0 0 * * *", assets=ORDERS),
    "partitioned": PARTITIONED,
}


def ordered(value: Any) -> Any:
    """Prefect's sets come in any order, and each trigger gets an id of its own."""
    if isinstance(value, dict):
        sets = ("expect", "after", "for_each")
        return {key: sorted(each) if key in sets else ordered(each) for key, each in value.items() if key != "id"}
    return [*map(ordered, value)] if isinstance(value, list) else value


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_automation_of_each_kind_of_schedule(name: str) -> None:
    wanted = automation_for(DEPLOYMENT, "report/prod", ConsumerOptions(to_schedule(SCHEDULES[name])))
    agrees(f"automations/{name}", ordered(wanted.model_dump(mode="json", exclude_unset=True)))


@pytest.mark.parametrize("name", ["asset", "and", "alias", "partitioned"])
def test_the_run_of_a_decision(name: str) -> None:
    agrees(f"flow_runs/{name}", run_of(name))


def run_of(name: str) -> dict[str, Any]:
    events = {
        "asset": (update(ORDERS, 1),),
        "and": (update(ORDERS, 1, extra={"__prefect_kind": "jinja", "template": "{{ 1 }}"}), update(CUSTOMERS, 2)),
        "alias": (update(CUSTOMERS, 1, aliases=("outputs",)),),
        "partitioned": (update(ORDERS, 1, partition_key="2026-01-01T05:00:00"),),
    }[name]
    key = "2026-01-01" if name == "partitioned" else None
    number = decision_id(DEPLOYMENT, key, (event.id for event in events))
    decision = Decision(number, 1, DEPLOYMENT, key, events, NOW)
    return run_request(decision, RunContext(number, "report/prod", key, events))


def update(asset: Asset, number: int, **about: Any) -> AssetEvent:
    event = AssetEvent(UUID(int=number), asset, NOW, Origin("api"), **about)
    return event.in_ledger(number, NOW)


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NUMBER = UUID("00000000-0000-4000-8000-000000000001")
EVENT = AssetEvent(
    NUMBER,
    Asset("s3://shop/orders", name="orders"),
    NOON,
    Origin("task", flow_run=SourceFlowRun(NUMBER, "run", parameters={"day": 1})),
    {"rows": 3, "files": [{"name": "café"}]},
    "monday",
    ("files",),
    {"seconds": 0.5},
    sequence=7,
    recorded=NOON,
)
WITH_EVENTS = RunContext(NUMBER, "report/daily", "monday", (EVENT,))
OF_A_TICK = RunContext(None, "report/daily", "monday", (), tick=NOON)
IN_AN_ARTIFACT = RunContext(NUMBER, "report/daily", "monday", None, NUMBER)


@pytest.mark.parametrize("name", ["WITH_EVENTS", "OF_A_TICK", "IN_AN_ARTIFACT"])
def test_run_contexts_are_as_agreed(name: str) -> None:
    written = run_context_to_json(globals()[name])
    agrees(f"run_contexts/{name.lower()}", written)
    assert run_context_from_json(written) == globals()[name]


@pytest.mark.parametrize("ours", [{"version": 2, "consumer": "x", "events": {"new": "form"}}, "text", [1]])
def test_another_form_says_what_to_do(ours: object) -> None:
    with pytest.raises(InvalidEvent, match="Update assetflow") as caught:
        run_context_from_json({"assetflow": ours})
    assert "the flow run's context" in str(caught.value)
