"""What both type checkers refuse, each in the line that ends with `# error`. Never run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import assetflow
import assetflow.partitions
from assetflow import (
    Asset,
    AssetAndTimeSchedule,
    AssetOrTimeSchedule,
    AtLeast,
    Metadata,
    PartitionedAssetTimetable,
    TriggeringAssetEvents,
    asset,
    deployment_triggers,
    emit,
    flow,
    simulate,
    spark_task,
    task,
    triggering_asset_events,
)
from assetflow.partitions import DayWindow, RollupMapper, StartOfDayMapper

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

orders = Asset("s3://shop/orders")
mapper = StartOfDayMapper()


def body() -> None: ...


made: list[Callable[..., object]] = []

# Options that are misspelt, or of the wrong type
flow(retrys=3)  # error
flow(schedule=5)  # error
flow(schedule=orders, while_paused="wait")  # error
flow(produces=5)  # error
task(outlet=[orders])  # error
task(outlets="s3://shop/orders")  # error
spark_task(outlet=orders)  # error
spark_task(conf=5)  # error
asset(retrys=3)  # error
orders & 5  # error
orders | "s3://shop/customers"  # error
AssetOrTimeSchedule(timetable=5, assets=orders)  # error
AssetAndTimeSchedule(timetable="@daily", assets=orders, until=timedelta(hours=1))  # error

# Time inside conditions, and options about time and amounts
orders.within(6)  # error
orders.times("3")  # error
AtLeast(orders, orders)  # error
flow(schedule=orders, debounce=600)  # error
flow(schedule=orders, deadline="0 8 * * *", on_deadline="stop")  # error
asset.multi(outlets=[orders], max_wait="1 h")  # error
PartitionedAssetTimetable(assets=orders, default_partition_mapper=StartOfDayMapper)  # error


PartitionedAssetTimetable(assets=orders, partition_mapper_config={"orders": mapper})  # error
RollupMapper(upstream_mapper=mapper, window=DayWindow)  # error
deployment_triggers(5)  # error
emit(5)  # error
Metadata("s3://shop/orders", {"rows": 1})  # error
simulate("scenario.json")  # error

# Names that are misspelt, or have moved
repr(assetflow.Aset)  # error
repr(assetflow.partitions.DayWindw)  # error
assetflow.AssetRef(nme="orders")  # error


# Calls


@task(outlets=orders)
def load(day: str) -> int:
    return len(day)


@spark_task(outlets=orders)
def frame(spark: SparkSession, day: str) -> DataFrame:
    return spark.read.json(day)


@spark_task(outlets=orders)  # error
def without_session() -> int:
    return 1


@flow(schedule=orders)
def report(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> int:
    return len(triggering_asset_events)


load()  # error
load(5)  # error
text: str = load("x")  # error
load(dag="x")  # error
load.with_options(retrys=2)  # error
frame()  # error
frame("x").show()  # error
report(5)  # error
report.with_options(schedule=5)  # error
