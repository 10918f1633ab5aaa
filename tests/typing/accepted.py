"""What a user writes, and the types that it has. Never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, assert_type

from prefect.schedules import Cron
from prefect.task_runners import ThreadPoolTaskRunner

import assetflow
from assetflow import (
    Asset,
    AssetAlias,
    AssetAll,
    AssetAndTimeSchedule,
    AssetAny,
    AssetEvent,
    AssetOrTimeSchedule,
    AssetRef,
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
from assetflow.partitions import DayWindow, RollupMapper, StartOfHourMapper, Window
from assetflow.timetables import CronTriggerTimetable
from assetflow.types import AssetDefinition, AssetTask, Published

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

orders = Asset("s3://shop/orders", name="orders", extra={"owner": "ann"})
customers = Asset("s3://shop/customers")
several = [orders, customers]

# Conditions

assert_type(orders & customers, AssetAll)
assert_type(orders | AssetAlias("x") | [customers], AssetAny)
assert_type(Asset.ref(name="orders"), AssetRef)
emit(orders, {"rows": 1}, api_key="x")
assert_type(emit("s3://shop/orders"), AssetEvent)
assert_type(simulate({"name": "s", "consumers": {}, "steps": []}), dict[str, object])
assert_type(assetflow.__version__, str)


# Tasks


@task
def plain(n: int) -> str:
    return str(n)


@task(outlets=[orders], inlets=several, retries=3, tags=["x"], retry_delay_seconds=[1, 2])
def load(day: str, n: int = 1) -> list[str]:
    return [day] * n


@task(outlets={orders, customers})
async def load_later(day: str) -> int:
    return len(day)


@task(outlets=orders)
def told() -> Generator[Metadata, None, int]:
    yield Metadata(orders, {"rows": 3})
    return 3


@task(outlets=orders)
def only_told() -> Iterator[Metadata]:
    yield Metadata(orders, {"rows": 3})


@task(outlets=orders)
async def told_later() -> AsyncIterator[Metadata]:
    yield Metadata(orders, {"rows": 3})


@task
def numbers() -> Generator[int, None, None]:
    yield 1


assert_type(told, AssetTask[[], int])
assert_type(plain(1), str)
assert_type(load("x", n=2), list[str])
assert_type(load.submit("x").result(), list[str])
assert_type(load.with_options(retries=2, outlets=[customers])("x"), list[str])
assert_type(told(), int)
only_told()
assert_type(numbers(), Generator[int, None, None])


# What a decorator gives is called as the function: same names, same defaults, same types.
class Loads(Protocol):
    def __call__(self, day: str, n: int = 1) -> list[str]: ...


class LoadsLater(Protocol):
    def __call__(self, day: str) -> Coroutine[Any, Any, int]: ...


a_load: Loads = load
a_later_load: LoadsLater = load_later
assert_type(load.inlets, tuple[Asset | AssetRef | AssetAlias, ...])


# Spark


@spark_task(outlets=[orders], retries=2, conf={"spark.x": 1})
def frame(spark: SparkSession, day: str) -> DataFrame:
    return spark.read.json(day)


@spark_task(outlets=several)
def frames(spark: SparkSession) -> dict[Asset, DataFrame]:
    return {orders: spark.range(1), customers: spark.range(2)}


@spark_task(outlets=orders)
def perhaps(spark: SparkSession, really: bool = True) -> DataFrame | None:
    return spark.range(1) if really else None


@spark_task(inlets=orders)
def count(spark: SparkSession) -> int:
    return spark.range(3).count()


@spark_task(outlets=orders)
async def frame_later(spark: SparkSession) -> DataFrame:
    return spark.range(1)


@spark_task(outlets=orders)
def frame_told(spark: SparkSession) -> Generator[Metadata, None, DataFrame]:
    yield Metadata(orders, {"source": "x"})
    return spark.range(1)


assert_type(frame("x"), Published)
assert_type(frame.submit("x").result(), Published)
assert_type(frames(), dict[Asset, Published])
assert_type(perhaps(really=False), Published | None)
assert_type(count(), int)
assert_type(frame_told(), Published)


# Flows


@flow
def by_hand(n: int = 1) -> str:
    return plain(n)


@flow(schedule=orders & customers, coalesce=True, while_paused="keep", retries=3, task_runner=ThreadPoolTaskRunner())
def report(
    limit: int = 3, triggering_asset_events: TriggeringAssetEvents = triggering_asset_events
) -> list[AssetEvent]:
    return triggering_asset_events[orders][:limit]


@flow(schedule=several, produces=customers, log_prints=True)
async def later(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> int:
    return len(triggering_asset_events.all())


class Reports(Protocol):
    def __call__(
        self, limit: int = 3, triggering_asset_events: TriggeringAssetEvents = triggering_asset_events
    ) -> list[AssetEvent]: ...


a_report: Reports = report
assert_type(by_hand(), str)
assert_type(report(), list[AssetEvent])
assert_type(report(limit=1, triggering_asset_events=triggering_asset_events()), list[AssetEvent])
assert_type(report.with_options(schedule="@daily", name="x")(), list[AssetEvent])

mapper = RollupMapper(upstream_mapper=StartOfHourMapper(), window=DayWindow(direction=Window.Direction.BACKWARD))
daily, hour = CronTriggerTimetable("@daily"), timedelta(hours=1)
flow(schedule="0 6 * * *")(by_hand.fn)
flow(schedule=Cron("@daily"))(by_hand.fn)
flow(schedule=AssetOrTimeSchedule(timetable="@daily", assets=[orders, [customers]]))(by_hand.fn)
flow(schedule=AssetAndTimeSchedule(timetable="@daily", assets=[orders], until="0 22 * * *"), deadline="@daily")(
    by_hand.fn
)
flow(schedule=AssetAndTimeSchedule(timetable=daily, assets=PartitionedAssetTimetable(assets=orders)))(by_hand.fn)
flow(schedule=(orders & customers).within(hour) | AtLeast(1, orders.times(2), [customers]).since(daily))(by_hand.fn)
flow(schedule=orders, debounce=hour, max_wait=hour, min_events=2, max_events=3, cooldown=hour)(by_hand.fn)
flow(schedule=orders, deadline=hour, on_deadline="run")(by_hand.fn).with_options(deadline=None, on_deadline=None)
flow(schedule=PartitionedAssetTimetable(assets=orders, partition_mapper_config={orders: mapper}))(by_hand.fn)
flow(schedule=Asset.ref(name="orders") | AssetAlias("x"))(by_hand.fn)
flow(schedule=None, reads=(orders, AssetAlias("x")), produces=frozenset({customers}))(by_hand.fn)
by_hand.to_deployment("x", triggers=deployment_triggers(orders | customers))


async def awaited() -> None:
    assert_type(await load_later("x"), int)
    await told_later()
    assert_type(await frame_later(), Published)
    assert_type(await later(), int)
    result: Coroutine[Any, Any, int] = later()
    await result


# Assets


@asset(uri="s3://shop/clean", schedule=orders, retries=2)
def clean(orders: Asset) -> int:
    return len(orders.uri)


@asset
def table(spark: SparkSession, clean: Asset) -> DataFrame:
    return spark.read.parquet(clean.uri)


@asset.multi(outlets=several, schedule=clean | table)
def both() -> None: ...


assert_type(clean, AssetDefinition[..., int])
assert_type(clean(), int)
assert_type(table(), Published)
flow(schedule=clean & orders)(by_hand.fn)
flow(schedule=clean.times(2) & (clean & orders).within(hour) & AtLeast(1, clean, orders.times(2)))(by_hand.fn)
asset.multi(outlets=several, schedule=clean, min_events=3)
task(inlets=[clean, orders], outlets=table)(by_hand.fn)
flow(schedule=PartitionedAssetTimetable(assets=clean, partition_mapper_config={clean: mapper}))(by_hand.fn)
Metadata(clean, {"rows": 3})
emit(clean)
