"""The flows of this repository, one after the other, on the Spark that the environment names; what came of it.

With the argument `shop` those of the tutorial only.
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


lake_flows: list[Any] = [ingest_flights, ingest_weather, ingest_planes, weather_hourly]
reports: list[Any] = [carrier_report, delay_by_weather, fleet_report]
produce: Any = orders_producer
compose: Any = board
combine: Any = combined_consumer

produce()
result: dict[str, Any] = {"master": get_session().conf.get("spark.master"), "by city": combine()}
if sys.argv[1] == "all":
    for flow in lake_flows + reports:
        flow()
    compose(triggering_asset_events=[updated(lake.delay_by_weather_asset), updated(lake.fleet_report_asset)])
    result["hours"] = len(list((lake.LAKE / "weather_hourly").iterdir()))
    result["wrong"] = [entry for entry in check.lake_checks() if not entry["ok"]]
sys.stdout.write("\n" + json.dumps(result))
