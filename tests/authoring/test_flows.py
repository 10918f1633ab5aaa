"""`@flow`: errors at decoration, the declaration, and the signature that Prefect stores."""

import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prefect import Flow
from prefect.schedules import Cron, Interval, RRule
from prefect.utilities.callables import parameter_schema

from assetflow import Asset, AssetAll, AssetAny, AssetOrTimeSchedule, PartitionedAssetTimetable, flow, task
from assetflow.core.values.schedules import Schedule
from assetflow.core.wire.declarations import declaration_from_text
from assetflow.errors import AssetflowWarning, InvalidEvent, InvalidFlow, InvalidSchedule, InvalidTimetable
from assetflow.timetables import CronTriggerTimetable, DeltaTriggerTimetable, PartitionedAtRuntime, RRuleTimetable
from assetflow.types import AssetFlow

ORDERS, CUSTOMERS = Asset("s3://shop/orders", name="orders"), Asset("s3://shop/customers")


def schema_of(made: Flow[Any, Any]) -> dict[str, Any]:
    return parameter_schema(made).model_dump()


def stored(made: Flow[Any, Any]) -> str:
    return schema_of(made)["properties"]["triggering_asset_events"]["x-assetflow"]


@task(outlets=[CUSTOMERS], inlets=[ORDERS])
def derive(limit: int) -> None: ...


def test_prefect_stores_the_declaration_with_the_parameters() -> None:
    @flow(schedule=ORDERS & CUSTOMERS, coalesce=True, while_paused="keep", name="n", retries=2)
    def consumer(limit: int = 3) -> None:
        derive(limit)

    properties = schema_of(consumer)["properties"]
    assert properties["limit"]["type"] == "integer"
    assert schema_of(consumer)["required"] == []
    assert declaration_from_text(stored(consumer)) == consumer.declaration
    assert consumer.declaration.options.coalesce
    assert consumer.declaration.options.while_paused == "keep"
    assert consumer.declaration.produces == (CUSTOMERS,)
    assert consumer.declaration.reads == (ORDERS,)
    assert (consumer.name, consumer.retries) == ("n", 2)


def test_with_options_keeps_the_schedule_or_replaces_it() -> None:
    @flow(schedule=ORDERS, produces=[CUSTOMERS])
    def consumer() -> None: ...

    renamed = consumer.with_options(name="other", retries=1)
    assert isinstance(renamed, AssetFlow)
    assert (renamed.name, renamed.retries, renamed.declaration) == ("other", 1, consumer.declaration)
    assert consumer.name == "consumer"
    changed = consumer.with_options(schedule=CUSTOMERS, coalesce=True)
    assert changed.schedule.condition == CUSTOMERS
    assert changed.declaration.options.coalesce
    assert declaration_from_text(stored(changed)) == changed.declaration
    assert consumer.with_options(schedule=None).schedule == Schedule()
    assert consumer.schedule.condition == ORDERS
    keyed = consumer.with_options(schedule=PartitionedAssetTimetable(assets=ORDERS))
    assert "partition_key" in schema_of(keyed)["properties"]


@pytest.mark.parametrize("wrong", [3, {ORDERS}, [ORDERS, "x"], Asset, AssetOrTimeSchedule, CronTriggerTimetable])
def test_a_value_that_is_not_a_schedule_is_refused_with_the_two_ways_to_write_one(wrong: Any) -> None:
    with pytest.raises(InvalidSchedule) as caught:

        @flow(schedule=wrong)
        def consumer() -> None: ...

    if isinstance(wrong, type):
        assert f"Write {wrong.__name__}(...)" in str(caught.value)
    else:
        assert 'Asset("...")' in str(caught.value)
        assert 'CronTriggerTimetable("...")' in str(caught.value)
    assert "consumer" in caught.value.where


@pytest.mark.parametrize(
    ("short", "meant"),
    [
        ("0 6 * * *", CronTriggerTimetable("0 6 * * *")),
        *((preset, CronTriggerTimetable(preset)) for preset in ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")),
        (timedelta(hours=1), DeltaTriggerTimetable(timedelta(hours=1))),
    ],
)
def test_rule_6_0_a_text_or_a_timedelta_is_a_timetable_in_utc(
    short: str | timedelta, meant: CronTriggerTimetable | DeltaTriggerTimetable
) -> None:
    made = flow(schedule=short)(_nothing)
    assert made.schedule == Schedule(timetable=meant)
    assert declaration_from_text(stored(made)).options.schedule.timetable == meant
    both = AssetOrTimeSchedule(timetable=short, assets=[ORDERS])
    assert flow(schedule=both)(_nothing).schedule.timetable == meant


@pytest.mark.parametrize("text", [ORDERS.uri, "orders", "@dayly", "@once", "", "0 6 * *", "61 * * * *", "5-1 * * * *"])
def test_rule_6_0_another_text_is_refused_and_the_error_names_assets(text: str) -> None:
    for wrong in (lambda: text, lambda: AssetOrTimeSchedule(timetable=text, assets=ORDERS)):
        with pytest.raises(InvalidTimetable) as caught:
            flow(schedule=wrong())(_nothing)
        assert f"Write Asset({text!r})" in str(caught.value)
        assert "@daily" in caught.value.fix
        assert caught.value.rule == "6.0"


@pytest.mark.parametrize("empty", [[], AssetAll(), AssetAny(), [AssetAll(), []]])
def test_a_schedule_without_assets_warns_that_it_never_runs(empty: Any) -> None:
    with pytest.warns(AssetflowWarning, match="flow _nothing: its schedule names no asset") as caught:
        flow(schedule=empty)(_nothing)
    assert caught[0].filename == __file__
    with pytest.warns(AssetflowWarning, match="flow _nothing: its schedule names no asset") as caught:
        scheduled = flow(schedule=ORDERS)(_nothing).with_options(schedule=empty)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduled.with_options(retries=1)


def test_a_scheduled_flow_cannot_have_a_required_parameter() -> None:
    with pytest.raises(InvalidFlow, match="'day'") as caught:

        @flow(schedule=ORDERS)
        def consumer(day: str, n: int = 1) -> None: ...

    assert "default" in caught.value.fix

    @flow(schedule=PartitionedAtRuntime())
    def by_hand(day: str) -> None: ...

    with pytest.raises(InvalidFlow):
        by_hand.with_options(schedule=ORDERS)


def test_schedules_of_prefect_become_timetables() -> None:
    anchor = datetime(2026, 1, 1, tzinfo=UTC)
    for given, meant in [
        (Cron("0 6 * * *", timezone="Europe/Berlin"), CronTriggerTimetable("0 6 * * *", "Europe/Berlin")),
        (Interval(timedelta(hours=2), anchor_date=anchor), DeltaTriggerTimetable(timedelta(hours=2), anchor)),
        (Interval(timedelta(hours=2)), DeltaTriggerTimetable(timedelta(hours=2))),
        (RRule("FREQ=DAILY;BYHOUR=6"), RRuleTimetable("FREQ=DAILY;BYHOUR=6")),
    ]:
        made = flow(schedule=given)(_nothing)
        assert made.schedule.timetable == meant
        both = flow(schedule=AssetOrTimeSchedule(timetable=given, assets=ORDERS))(_nothing)  # pyright: ignore[reportArgumentType]
        assert (both.schedule.timetable, both.schedule.condition) == (meant, ORDERS)


def _nothing() -> None: ...


def test_a_blank_partition_key_is_refused_when_the_flow_starts() -> None:
    @flow(schedule=PartitionedAssetTimetable(assets=Asset("s3://b/daily")))
    def daily() -> None: ...

    with pytest.raises(InvalidEvent, match="blank"):
        daily.fn(partition_key=" ")  # pyright: ignore[reportCallIssue] (the decorator adds the parameter)
    daily.fn(partition_key="")  # pyright: ignore[reportCallIssue]
