"""Spark lands orders, dbt makes sales of them, and a report follows dbt's model: `python deployments/dbt/shop.py`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from prefect import serve

from assetflow import Asset, flow, spark_task, triggering_asset_events

HERE = Path(__file__).parent
LAKE = Path(os.environ["SHOP_HOME"])
DBT = ["uv", "run", "--frozen", "--isolated", "--only-group", "dbt", "python", str(HERE / "build.py")]

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
    """Run dbt in its own environment. Its flow run and its events are its own."""
    places = {"DBT_TARGET_PATH": str(LAKE / "target"), "DBT_LOG_PATH": str(LAKE / "logs")}
    subprocess.run(DBT, check=True, cwd=HERE, env={**os.environ, **places})


@flow(schedule=sales)
def report(triggering_asset_events: Any = triggering_asset_events) -> str:
    (event,) = triggering_asset_events[sales]
    return f"made by {event.origin.by}"


if __name__ == "__main__":
    serve(*(each.to_deployment(name="dbt") for each in (land, transform, report)))  # pyright: ignore[reportArgumentType]
