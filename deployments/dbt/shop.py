"""Spark lands orders, dbt makes sales of them, and a report follows dbt's model: `python deployments/dbt/shop.py`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from prefect import serve
from prefect.deployments import run_deployment

from assetflow import Asset, flow, spark_task, triggering_asset_events

LAKE = Path(os.environ["SHOP_HOME"])

orders = Asset(f"file://{LAKE}/orders", name="orders")
# The key that prefect-dbt makes: adapter, database, schema, model.
sales = Asset("duckdb://warehouse/main/sales", name="sales")


@spark_task(outlets=[orders])
def land_orders(spark: Any, amount: float | None) -> Any:
    return spark.createDataFrame([("open", amount), ("paid", 40.0)], "state STRING, amount DOUBLE")


@flow
def land(amount: float | None = 120.0) -> None:
    land_orders(amount)


@flow(schedule=orders)
def transform() -> None:
    """Run dbt, in its own environment, and fail if it fails."""
    state: Any = run_deployment("build/dbt").state  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    if not state.is_completed():
        raise RuntimeError(state.message)


@flow(schedule=sales)
def report(triggering_asset_events: Any = triggering_asset_events) -> str:
    (event,) = triggering_asset_events[sales]
    return f"made by {event.origin.by}"


if __name__ == "__main__":
    serve(*(each.to_deployment(name="dbt") for each in (land, transform, report)))  # pyright: ignore[reportArgumentType]
