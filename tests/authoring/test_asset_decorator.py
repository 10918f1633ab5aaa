"""What stands for an asset: the object of `@asset`, with the parameters of its function, and an asset of Prefect."""

import inspect
from typing import Any

import pytest
from prefect.assets import Asset as PrefectAsset
from prefect.assets import AssetProperties

from assetflow import (
    Asset,
    AssetAlias,
    AssetAll,
    AssetAny,
    Eager,
    Metadata,
    PartitionedAssetTimetable,
    asset,
    flow,
    task,
)
from assetflow.core.values.schedule_values import to_schedule
from assetflow.errors import InvalidAsset, InvalidFlow, InvalidSchedule
from assetflow.partitions import StartOfDayMapper
from assetflow.prefect_io.names import EVENTS_PARAMETER
from assetflow.timetables import CronTriggerTimetable
from assetflow.types import AssetDefinition

PLANES = Asset("s3://lake/planes")


@asset(uri="s3://lake/orders", group="shop", extra={"team": "sales"})
def orders() -> int:
    return 3


@asset
def customers() -> None: ...


@asset(schedule=orders & customers)
def report(orders: Asset, customers: Asset, top: int = 10) -> None: ...


@asset.multi(outlets=[Asset("s3://lake/a"), AssetAlias("more")], schedule=CronTriggerTimetable("0 6 * * *"))
def several() -> None: ...


def test_a_function_becomes_a_flow_with_one_outlet() -> None:
    assert isinstance(orders, AssetDefinition)
    made = orders.asset
    assert (made.uri, made.name, made.group, made.extra) == ("s3://lake/orders", "orders", "shop", {"team": "sales"})
    assert (customers.asset.uri, customers.asset.name) == ("customers", "customers")
    assert orders.declaration.produces == (made,)
    assert orders.name == "orders"


def test_the_object_stands_for_its_asset_in_schedules() -> None:
    assert to_schedule(orders).condition == orders.asset
    assert to_schedule([orders, PLANES]).condition == AssetAll(orders.asset, PLANES)
    assert (orders & customers) == AssetAll(orders.asset, customers.asset)
    assert (orders | PLANES) == AssetAny(orders.asset, PLANES)
    assert (PLANES & orders) == AssetAll(PLANES, orders.asset)
    assert (PLANES | orders) == AssetAny(PLANES, orders.asset)
    assert report.schedule.condition == AssetAll(orders.asset, customers.asset)


def test_the_object_stands_for_its_asset_in_outlets_and_inlets() -> None:
    @task(outlets=[orders], inlets=customers)
    def writes() -> None: ...

    assert writes.outlets == (orders.asset,)
    assert writes.inlets == (customers.asset,)


def test_parameters_without_a_default_are_inlets_and_the_others_belong_to_the_flow() -> None:
    assert report.declaration.reads == (orders.asset, customers.asset)
    assert list(inspect.signature(report.fn).parameters) == ["top", EVENTS_PARAMETER]


def test_a_parameter_named_like_no_asset_of_the_module_is_a_reference() -> None:
    @asset
    def late(shipments: Asset) -> None: ...

    assert late.declaration.reads == (Asset.ref(name="shipments"),)


def test_a_parameter_that_assetflow_fills_in_is_not_an_inlet() -> None:
    @asset
    def asks(outlet_events: Any, inlet_events: Any, triggering_asset_events: Any, partition_key: Any) -> None: ...

    assert asks.declaration.reads == ()
    assert list(inspect.signature(asks.fn).parameters) == ["partition_key", EVENTS_PARAMETER]


def test_a_flow_does_not_produce_other_definitions_that_its_code_names() -> None:
    @asset
    def names() -> None:
        _ = names, orders.asset

    assert names.declaration.produces == (names.asset,)


def test_several_outlets_stand_for_all_of_them() -> None:
    assert several.outlets == (Asset("s3://lake/a"), AssetAlias("more"))
    assert several.as_condition() == AssetAll(Asset("s3://lake/a"), AssetAlias("more"))
    assert several.schedule.timetable == CronTriggerTimetable("0 6 * * *")
    with pytest.raises(InvalidFlow, match="just one asset"):
        _ = several.asset


def test_with_options_keeps_the_outlets() -> None:
    changed = orders.with_options(schedule=customers, name="other")
    assert changed.asset is orders.asset
    assert changed.schedule.condition == customers.asset
    assert changed.name == "other"
    assert orders.schedule.condition is None


@pytest.mark.parametrize("name", ["self", "context"])
def test_reserved_names_are_refused(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def made({name}): ...\ndef {name}(): ...", namespace)
    with pytest.raises(InvalidAsset, match=rf"parameter '{name}'") as parameter:
        asset(namespace["made"])
    with pytest.raises(InvalidAsset, match=name):
        asset(namespace[name])
    assert parameter.value.rule == "1.5"


def test_parameters_that_cannot_be_passed_by_name_are_refused() -> None:
    with pytest.raises(InvalidFlow, match=r"\*rest"):

        @asset
        def made(*rest: Any) -> None: ...


def test_errors_of_wrong_calls_say_what_to_write() -> None:
    with pytest.raises(InvalidFlow, match="has no outlets"):
        asset.multi(outlets=[])
    with pytest.raises(InvalidFlow, match="Put @asset above a def"):
        asset(3)  # type: ignore[call-overload]
    with pytest.raises(InvalidSchedule, match=r"Asset\('orders'\)"):
        asset(schedule="orders")(lambda: None)


def test_a_flow_on_a_definition_is_scheduled_on_its_asset() -> None:
    @flow(schedule=orders | several)
    def consumer() -> None: ...

    assert consumer.schedule.condition == AssetAny(orders.asset, several.as_condition())


URI = "postgres://dev:5432/jaffle/orders"
PREFECTS = PrefectAsset(key="postgres://dev/jaffle/orders", properties=AssetProperties(name="orders"))


@pytest.mark.rule("1.2")
def test_an_asset_of_prefect_stands_for_its_key_in_schedules() -> None:
    orders = Asset(URI, name="orders")
    for given, meant in [
        (PREFECTS, orders),
        ([PREFECTS, PLANES], orders & PLANES),
        (PREFECTS | PLANES, orders | PLANES),
        (PLANES & PREFECTS, PLANES & orders),
    ]:
        condition = to_schedule(given).condition
        assert condition is not None
        assert condition == meant
        assert condition.describe() == meant.describe()


def test_an_asset_of_prefect_stands_for_its_key_in_tasks_and_flows() -> None:
    @task(inlets=[PREFECTS], outlets=PREFECTS)
    def load() -> None: ...

    assert load.inlets == load.outlets == (Asset(URI),)
    assert [each.label for each in load.outlets] == ["orders"]

    @flow(produces=[PREFECTS])
    def made() -> None: ...

    @flow(schedule=Eager(PREFECTS))
    def kept() -> None: ...

    assert to_schedule(Eager(PREFECTS)).keeping is not None


def test_an_asset_of_prefect_stands_for_its_key_in_mappers_and_metadata() -> None:
    timetable = PartitionedAssetTimetable(
        assets=PREFECTS, partition_mapper_config={PREFECTS: StartOfDayMapper()}
    ).as_schedule()
    assert timetable.partitioning is not None
    assert [target.uri for target, _ in timetable.partitioning.mappers] == [URI]
    assert Metadata(PREFECTS, {"rows": 1}).asset is PREFECTS
