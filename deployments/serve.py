"""Serve every flow from one process, without a work pool: `python -m deployments.serve`."""

from typing import cast

from prefect import serve
from prefect.deployments.runner import RunnerDeployment
from prefect.events import DeploymentEventTrigger

from flows.alert import alert
from flows.announce import announce
from flows.freshness import delay_summary, delays, delays_by_day, delays_by_hour, watch_feed
from flows.ingest import ingest_arrivals, ingest_flights, ingest_planes, ingest_weather
from flows.orders import combined_consumer, orders_consumer, orders_producer
from flows.partitions import daily_delays, flights_daily, monthly_report, weather_hourly
from flows.reports import board, carrier_report, delay_by_weather, fleet_report

SHOP = (orders_producer, orders_consumer, combined_consumer)
LAKE = (
    *(ingest_flights, ingest_weather, ingest_planes, ingest_arrivals),
    *(carrier_report, delay_by_weather, fleet_report, board),
)
PARTITIONS = (weather_hourly, flights_daily, daily_delays, monthly_report)
KEPT_UP_TO_DATE = (watch_feed, delays, delays_by_hour, delays_by_day, delay_summary)

# Prefect decides this one: our events are there for everybody's automations.
BOARD_UPDATED = DeploymentEventTrigger(
    name="announce when the board was updated",
    expect={"assetflow.asset.updated"},
    match={"prefect.resource.id": "file://*/lake/board"},  # pyright: ignore[reportArgumentType]
)


DATA_TOO_OLD = DeploymentEventTrigger(
    name="alert when data is too old, and when it is fresh again",
    expect={"assetflow.freshness.fail", "assetflow.freshness.pass"},
    parameters={"words": "{{ event.payload.words }}"},
)


def main() -> None:
    """Serve until interrupted."""
    shop = [flow.to_deployment(name="shop") for flow in SHOP]
    lake = [flow.to_deployment(name="lake") for flow in (*LAKE, *PARTITIONS, *KEPT_UP_TO_DATE)]
    announced = announce.to_deployment(name="lake", triggers=[BOARD_UPDATED])
    alerted = alert.to_deployment(name="lake", triggers=[DATA_TOO_OLD])
    # Called without a running event loop, as here, to_deployment gives deployments, not coroutines.
    serve(*cast("list[RunnerDeployment]", [*shop, *lake, announced, alerted]))


if __name__ == "__main__":
    main()
