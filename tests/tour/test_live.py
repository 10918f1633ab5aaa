"""From a task to the flow below it, on a real Prefect server, with plain Python and with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assetflow import Asset, TriggeringAssetEvents, flow, outlet_events, spark_task, task, triggering_asset_events
from assetflow.spark.reading import read
from assetflow.testing import Harness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS, CUSTOMERS = Asset("s3://tour/orders"), Asset("s3://tour/customers")


@task(outlets=[ORDERS])
def load_orders() -> None:
    outlet_events[ORDERS].extra = {"source": "/landing/orders"}


@task(outlets=[CUSTOMERS])
def load_customers() -> None: ...


@flow
def load() -> None:
    load_orders()
    load_customers()


@flow(schedule=ORDERS & CUSTOMERS)
def report(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> list[Any]:
    return [event.extra for event in triggering_asset_events[ORDERS]]


@pytest.mark.prefect
@pytest.mark.walk
def test_a_flow_runs_once_with_the_updates_of_the_tasks_above(h: Harness) -> None:
    h.deploy(report)
    h.run(load)
    (run,) = h.settle().runs(report)
    assert (run.uris, run.state) == ([ORDERS.uri, CUSTOMERS.uri], "Completed")
    assert [event.extra for event in run.events] == [{"source": "/landing/orders"}, {}]


@pytest.mark.prefect
@pytest.mark.spark
@pytest.mark.walk
def test_what_a_spark_task_returns_is_there_when_the_flow_below_runs(
    h: Harness, shared_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSETFLOW_SPARK_MASTER", "local[2]")
    names, seen = Asset(f"file://{tmp_path}/names"), list[int]()

    @spark_task(outlets=[names])
    def load_names(spark: SparkSession) -> Any:
        return spark.createDataFrame([("ada",), ("grace",)], "name string")

    @flow
    def load() -> None:
        load_names()

    @flow(schedule=names)
    def count() -> None:
        seen.append(read(names, shared_spark).count())

    h.deploy(count)
    h.run(load)
    assert [run.state for run in h.settle().runs(count)] == ["Completed"]
    assert seen == [2]
