"""A producer of two assets and a consumer of both, without Spark."""

from assetflow import Asset, TriggeringAssetEvents, flow, task

ORDERS = Asset("s3://replicas/orders")
CUSTOMERS = Asset("s3://replicas/customers")


@task(outlets=[ORDERS])
def produce_orders() -> None: ...


@task(outlets=[CUSTOMERS])
def produce_customers() -> None: ...


@flow
def producer() -> None:
    produce_orders()
    produce_customers()


@flow(schedule=ORDERS & CUSTOMERS)
def consumer(triggering_asset_events: TriggeringAssetEvents) -> None:
    assert {event.uri for event in triggering_asset_events.all()} == {ORDERS.uri, CUSTOMERS.uri}
