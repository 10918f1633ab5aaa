"""The flows of this repository, one after the other, on the Spark that the environment names; what came of it.

With the argument `shop` those of the tutorial only, and one that writes partitions.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from assetflow import Asset, AssetEvent
from assetflow.core.events import Origin
from assetflow.spark.session import get_session
from flows import check, lake
from flows.ingest import ingest_flights, ingest_planes, ingest_weather
from flows.orders import combined_consumer, orders_producer
from flows.partitions import weather_hourly
from flows.reports import board, carrier_report, delay_by_weather, fleet_report


def updated(asset: Asset) -> AssetEvent:
    return AssetEvent(id=uuid4(), asset=asset, occurred=datetime.now(UTC), origin=Origin("api"))


shop: list[Any] = [orders_producer, weather_hourly]
rest: list[Any] = [ingest_flights, ingest_weather, ingest_planes, carrier_report, delay_by_weather, fleet_report]
compose: Any = board
combine: Any = combined_consumer

is_all = sys.argv[1] == "all"
for flow in shop + rest if is_all else shop:
    flow()
if is_all:
    compose(triggering_asset_events=[updated(lake.delay_by_weather_asset), updated(lake.fleet_report_asset)])
result = {
    "master": get_session().conf.get("spark.master"),
    "by city": combine(),
    "hours": len(list((lake.LAKE / "weather_hourly").iterdir())),
    "wrong": [entry for entry in check.lake_checks() if not entry["ok"]] if is_all else [],
}
sys.stdout.write("\n" + json.dumps(result))
