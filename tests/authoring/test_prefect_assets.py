"""An asset of Prefect stands for the asset whose URI is its key, wherever one is named. Contract 1.2."""

from __future__ import annotations

import pytest
from prefect.assets import Asset as PrefectAsset
from prefect.assets import AssetProperties

from assetflow import Asset, Eager, Metadata, PartitionedAssetTimetable, flow, task
from assetflow.core.values.schedule_values import to_schedule
from assetflow.partitions import StartOfDayMapper

URI = "postgres://dev:5432/jaffle/orders"
ORDERS = PrefectAsset(key="postgres://dev/jaffle/orders", properties=AssetProperties(name="orders"))
CUSTOMERS = Asset("s3://shop/customers")


@pytest.mark.rule("1.2")
def test_in_schedules() -> None:
    orders = Asset(URI, name="orders")
    for given, meant in [
        (ORDERS, orders),
        ([ORDERS, CUSTOMERS], orders & CUSTOMERS),
        (ORDERS | CUSTOMERS, orders | CUSTOMERS),
        (CUSTOMERS & ORDERS, CUSTOMERS & orders),
    ]:
        condition = to_schedule(given).condition
        assert condition is not None
        assert condition == meant
        assert condition.describe() == meant.describe()


def test_in_tasks_and_flows() -> None:
    @task(inlets=[ORDERS], outlets=ORDERS)
    def load() -> None: ...

    assert load.inlets == load.outlets == (Asset(URI),)
    assert [each.label for each in load.outlets] == ["orders"]

    @flow(produces=[ORDERS])
    def made() -> None: ...

    @flow(schedule=Eager(ORDERS))
    def kept() -> None: ...

    assert to_schedule(Eager(ORDERS)).keeping is not None


def test_in_mappers_and_metadata() -> None:
    timetable = PartitionedAssetTimetable(
        assets=ORDERS, partition_mapper_config={ORDERS: StartOfDayMapper()}
    ).as_schedule()
    assert timetable.partitioning is not None
    assert [target.uri for target, _ in timetable.partitioning.mappers] == [URI]
    assert Metadata(ORDERS, {"rows": 1}).asset is ORDERS
