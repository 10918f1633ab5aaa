"""Example 1: a producer with two tasks; one consumer of the first asset, one of both."""

import pytest

from assetflow import Asset, flow, task
from assetflow.testing import ConsumerRun, Harness

ORDERS = Asset("s3://my-bucket/orders/daily.parquet")
CUSTOMERS = Asset("s3://my-bucket/customers/latest.csv")


@task(outlets=[ORDERS])
def produce_orders() -> None: ...


@task(outlets=[CUSTOMERS])
def produce_customers() -> None: ...


@flow(schedule=ORDERS)
async def data_assets_consumer_orders() -> None: ...


@flow(schedule=ORDERS & CUSTOMERS)
async def data_assets_consumer_combined() -> None: ...


@pytest.mark.prefect
def test_live(h: Harness) -> None:
    h.deploy(data_assets_consumer_orders)
    h.deploy(data_assets_consumer_combined)
    before_the_end: list[ConsumerRun] = []

    @flow
    async def data_assets_producer() -> None:
        produce_orders()
        before_the_end.extend(h.settle(execute=False).runs(data_assets_consumer_orders))
        produce_customers()

    h.run(data_assets_producer)
    assert [run.uris for run in before_the_end] == [[ORDERS.uri]]

    h.settle()
    (first,) = h.runs(data_assets_consumer_orders)
    (second,) = h.runs(data_assets_consumer_combined)
    assert second.uris == [ORDERS.uri, CUSTOMERS.uri]
    assert (first.state, second.state) == ("Completed", "Completed")
