"""Schedules as Prefect's triggers: the exact JSON of each kind, and what Prefect's own matching makes of it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.events.schemas.automations import AutomationCore, CompoundTrigger
from prefect.server.events.schemas.automations import AutomationCreate
from prefect.server.events.schemas.automations import EventTrigger as ServerEventTrigger
from prefect.server.events.schemas.events import ReceivedEvent, Resource, matches

from assetflow import freshness_trigger
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.conditions import AssetAll, AssetAny, AtLeast, Condition
from assetflow.core.values.schedule_values import (
    AssetAndTimeSchedule,
    AssetOrTimeSchedule,
    PartitionedAssetTimetable,
    ScheduleValue,
)
from assetflow.errors import InvalidCall, InvalidSchedule, UnsupportedDelivery
from assetflow.prefect_io.automations import MAX_DEPTH, condition_triggers, deployment_triggers, escaped
from tests.golden import agrees

A, B, C, D = (Asset(f"s3://lake/raw/{letter}") for letter in "abcd")
CASES: dict[str, ScheduleValue] = {
    "asset": A,
    "asset_with_wildcards": Asset("x-files:[a]/*/b?c"),
    "asset_with_exclamation_mark": Asset("!important"),
    "asset_by_uri": Asset.ref(uri="s3://lake/raw/a"),
    "asset_by_name": Asset.ref(name="orders"),
    "alias": AssetAlias("regions"),
    "list": [A, B],
    "or": A | B | C,
    "and": A & B,
    "or_of_and": A | (B & C),
    "and_of_or": (A | B) & (C | D),
    "same_kind_nested": AssetAll(A, AssetAll(B, AssetAll(C, A))),
    "or_of_everything": A | Asset.ref(name="orders") | AssetAlias("x") | AssetAlias("y") | (B & C),
    "partitioned": PartitionedAssetTimetable(assets=A & B),
    "asset_or_time": AssetOrTimeSchedule(timetable="0 0 * * *", assets=A),
    "always_true_beside_an_asset": [A, []],
    "true_by_itself": AssetAny(A, AssetAll()),
    "nothing": [],
    "never": AssetAll(A, AssetAny()),
    "quorum": AtLeast(2, A, B, C),
    "quorum_of_conditions": AtLeast(2, A & B, A | C, A, A),
    "quorum_of_one": AtLeast(1, A, B),
    "quorum_of_all": AtLeast(2, A, B),
    "quorum_with_true": AtLeast(2, A, B, AssetAll(), AssetAny()),
    "times": A.times(3),
    "times_and": A.times(3) & B & C,
    "times_one": A.times(1),
    "within": (A & B).within(timedelta(hours=6)),
    "within_and": (A & B).within(timedelta(hours=6)) & (C & D),
    "within_within": ((A & B).within(timedelta(hours=6)) & C).within(timedelta(hours=2)),
    "times_within": A.times(3).within(timedelta(hours=6)),
}


def as_json(schedule: ScheduleValue) -> list[dict[str, Any]]:
    """The triggers of the automation that a deployment makes of them."""
    return [_sorted(each.trigger.model_dump(mode="json")) for each in automations(schedule)]


def automations(schedule: ScheduleValue) -> list[AutomationCore]:
    triggers = deployment_triggers(schedule)
    for trigger in triggers:
        trigger.set_deployment_id(uuid4())
    return [trigger.as_automation() for trigger in triggers]


def _sorted(value: Any) -> Any:
    """Prefect's sets come in any order."""
    if isinstance(value, dict):
        sets = ("expect", "after", "for_each")
        return {key: sorted(each) if key in sets else _sorted(each) for key, each in value.items()}
    return [*map(_sorted, value)] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_schedule_compiles_to_these_triggers(name: str) -> None:
    agrees(f"triggers/{name}", as_json(CASES[name]))


@pytest.mark.parametrize("name", CASES)
def test_the_server_takes_them(name: str) -> None:
    for automation in automations(CASES[name]):
        assert AutomationCreate.model_validate(automation.model_dump(mode="json"))


@pytest.mark.rule("1.8")
@given(st.text(alphabet="ab*?[]!\\-^/:.", min_size=1, max_size=12), st.text(alphabet="ab*?[]!\\-^/:.", max_size=12))
def test_an_escaped_text_matches_itself_and_nothing_else(text: str, other: str) -> None:
    assert matches(escaped(text), text)
    assert matches(escaped(text), other) == (text == other)


def test_rule_2_10_of_prefects_own_events_those_count_that_name_a_task_run() -> None:
    (trigger,) = deployment_triggers(A)
    assert isinstance(trigger, CompoundTrigger)
    servers = [ServerEventTrigger.model_validate(each.model_dump(mode="json")) for each in trigger.triggers]

    def starts(kind: str, *related: str) -> int:
        roles = [{"prefect.resource.id": "prefect.x.1", "prefect.resource.role": each} for each in related]
        return sum(server.covers(event(A.uri, kind=kind, related=roles)) for server in servers)

    assert starts("assetflow.asset.updated") == 1
    assert starts("prefect.asset.materialization.succeeded", "flow-run", "task-run") == 1
    assert starts("prefect.asset.materialization.succeeded", "flow-run") == 0
    assert starts("prefect.asset.materialization.failed", "task-run") == 0


def test_what_would_block_prefects_server_is_refused() -> None:
    assert condition_triggers(alternating(MAX_DEPTH), {"x"})
    with pytest.raises(InvalidSchedule, match="between AND and OR"):
        condition_triggers(alternating(MAX_DEPTH + 1), {"x"})


@pytest.mark.parametrize(
    "schedule", [(A & B).since("@daily"), AssetAndTimeSchedule(timetable="@daily", assets=A, until="0 6 * * *")]
)
def test_what_prefect_has_no_trigger_for_is_refused(schedule: Any) -> None:
    with pytest.raises(UnsupportedDelivery, match=r"Prefect's triggers have no (periods|opening hours)"):
        deployment_triggers(schedule)


def alternating(depth: int) -> Condition:
    condition: Condition = A
    for number in range(1, depth):
        other = Asset(f"s3://deep/{number}")
        condition = AssetAll(condition, other) if number % 2 else AssetAny(condition, other)
    return condition


def event(
    uri: str, *, name: str = "x", kind: str = "assetflow.asset.updated", related: list[dict[str, str]] | None = None
) -> ReceivedEvent:
    resource = Resource({"prefect.resource.id": uri, "prefect.resource.name": name})
    return ReceivedEvent.model_validate(
        {
            "id": uuid4(),
            "occurred": datetime(2026, 11, 20, tzinfo=UTC),
            "event": kind,
            "resource": resource,
            "related": related or [],
            "payload": {},
        }
    )


def test_a_trigger_knows_three_states() -> None:
    assert freshness_trigger(A.uri, "pass").model_dump()["match"] == {"prefect.resource.id": A.uri}
    with pytest.raises(InvalidCall, match="Write") as refused:
        freshness_trigger(A, "late")  # type: ignore[arg-type]
    assert refused.value.rule == "8.13"
