"""Flows that tests deploy as users do: by the path of this file."""

from assetflow import Asset, AssetAlias, PartitionedAssetTimetable, TriggeringAssetEvents, flow, task

ORDERS = Asset("s3://deployed/orders", name="deployed orders")
CUSTOMERS = Asset("s3://deployed/customers")


@task(outlets=[CUSTOMERS], inlets=[ORDERS])
def derive() -> None: ...


@flow(schedule=ORDERS & AssetAlias("x"), coalesce=True)
def consumer(limit: int = 3, *, triggering_asset_events: TriggeringAssetEvents) -> int:
    """Runs on orders.

    Parameters:
        limit: how many
    """
    derive()
    return limit + len(triggering_asset_events.all())


only_customers = consumer.with_options(name="only-customers", schedule=CUSTOMERS)


@flow(schedule=PartitionedAssetTimetable(assets=ORDERS))
def partitioned() -> None: ...
