"""The tutorial: a producer updates two datasets; one flow runs on the first of them, another one on both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assetflow import TriggeringAssetEvents, flow, read, spark_task, triggering_asset_events
from flows.lake import dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

orders = dataset("orders", group="shop")
customers = dataset("customers", group="shop")


@spark_task(outlets=[orders])
def produce_orders(spark: SparkSession) -> DataFrame:
    """Three orders."""
    return spark.createDataFrame(
        [(1, "ada", 120.0), (2, "ada", 80.0), (3, "grace", 40.0)], "id INT, customer STRING, total DOUBLE"
    )


@spark_task(outlets=[customers])
def produce_customers(spark: SparkSession) -> DataFrame:
    """Two customers."""
    return spark.createDataFrame([("ada", "London"), ("grace", "New York")], "customer STRING, city STRING")


@flow(log_prints=True)
def orders_producer() -> None:
    """Updates `orders`, then `customers`."""
    produce_orders()
    produce_customers()


@spark_task(inlets=[orders])
def count_orders(spark: SparkSession) -> int:
    """How many orders there are."""
    return read(orders, spark).count()


@spark_task(inlets=[orders, customers])
def total_by_city(spark: SparkSession) -> dict[str, float]:
    """What was ordered in each city."""
    rows = read(orders, spark).join(read(customers, spark), "customer").groupBy("city").sum("total").collect()
    return {row["city"]: row["sum(total)"] for row in rows}


@flow(schedule=orders, log_prints=True)
def orders_consumer(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> int:
    """Runs when the orders were updated."""
    for event in triggering_asset_events[orders]:
        print(f"{event.asset.name} was updated: {event.metrics.get('rows')} rows")
    return count_orders()


@flow(schedule=orders & customers, log_prints=True)
def combined_consumer(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> dict[str, float]:
    """Runs when both the orders and the customers were updated."""
    print(f"runs with {len(triggering_asset_events.all())} updates")
    return total_by_city()
