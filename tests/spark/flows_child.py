"""Flows of this repository, one after the other, on the Spark that the environment names; what came of it.

With the argument `lake` some of the lake's too: large files, and one dataset of many partitions.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from assetflow import read
from assetflow.spark.session import get_session
from flows import lake
from flows.ingest import ingest_planes, ingest_weather
from flows.orders import combined_consumer, orders_producer
from flows.partitions import weather_hourly

tutorial: list[Any] = [orders_producer, combined_consumer]
of_the_lake: list[Any] = [ingest_planes, ingest_weather, weather_hourly]

answers = [flow() for flow in tutorial]
result: dict[str, Any] = {"master": get_session().conf.get("spark.master"), "by city": answers[-1]}
if sys.argv[1] == "lake":
    for flow in of_the_lake:
        flow()
    result["rows"] = [read(asset, get_session()).count() for asset in (lake.planes, lake.weather)]
    result["hours"] = len(list((lake.LAKE / "weather_hourly").iterdir()))
sys.stdout.write("\n" + json.dumps(result))
