"""Publish a dataset whose last part is not written as long as a file is there."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from assetflow.core.values.assets import Asset
from assetflow.spark.publish import publish
from assetflow.spark.session import SparkProfile, get_session

uri, hold = sys.argv[1:]


def wait(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        while len(batch) and batch["id"].max() == 3 and os.path.exists(hold):  # noqa: PTH110 (runs in Spark's worker)
            time.sleep(0.05)
        yield batch


spark = get_session(SparkProfile(master="local[2]"))
publish(spark.range(0, 4, 1, 4).mapInPandas(wait, "id long"), Asset(uri))
