"""Flows of this repository, one after the other, on the Spark that the environment names; what came of it."""

import json
import sys
from typing import Any

from assetflow import read
from assetflow.spark.session import get_session
from flows import lake
from flows.ingest import ingest_planes, ingest_weather
from flows.orders import combined_consumer, orders_producer
from flows.partitions import weather_hourly

result: dict[str, Any] = {"master": get_session().conf.get("spark.master")}
orders_producer()
result["by city"] = combined_consumer()
ingest_planes()
ingest_weather()
weather_hourly()
result["rows"] = [read(asset, get_session()).count() for asset in (lake.planes, lake.weather)]
result["hours"] = len(list((lake.LAKE / "weather_hourly").iterdir()))
sys.stdout.write("\n" + json.dumps(result))
