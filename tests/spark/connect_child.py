"""What a flow run does with Spark, on the shared local Connect server."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any
from unittest.mock import patch

from assetflow.authoring.checks import DeclaredChecks
from assetflow.authoring.recording import TaskRecording
from assetflow.checks import at_least, check, schema, unique, values
from assetflow.core.values.assets import Asset
from assetflow.errors import AssetflowError, CheckFailed
from assetflow.spark.data_files import AttemptId
from assetflow.spark.publish import publish
from assetflow.spark.reading import read
from assetflow.spark.session import SparkProfile, get_session
from assetflow.spark.watch import tagged

lake = sys.argv[1]
orders = Asset(f"file://{lake}/orders")
with warnings.catch_warnings():
    # PySpark warns of each setting that a running server refuses.
    warnings.filterwarnings("error", message="Failed to set")
    spark = get_session()


def publish_as(run: str, number: int, *arguments: Any, **options: Any) -> Any:
    with patch("assetflow.spark.publish.current_attempt", lambda: AttemptId(run, number)):
        return publish(*arguments, **options)


def error_of(profile: SparkProfile) -> str:
    try:
        get_session(profile)
    except AssetflowError as error:
        return type(error).__name__
    return "none"


publish_as("run-1", 1, spark.range(3), orders)
pinned = read(orders)
publish_as("run-2", 1, spark.range(10, 12, numPartitions=1), orders, mode="append")
published = publish_as("run-2", 2, spark.range(10, 12, numPartitions=1), orders, mode="append")
try:
    publish_as("run-3", 1, spark.sql("SELECT raise_error('broken') AS id"), orders)
    failed = "no"
except AssetflowError as error:
    failed = type(error).__name__
with tagged(spark, "mine"):
    tags = sorted(spark.getTags())
empty = Asset(f"file://{lake}/empty")


@check
def is_small(df: Any) -> Any:
    return df.filter("id > 5")


checked = Asset(f"file://{lake}/checked")
rules = (at_least(1), unique("id"), values("id", {0, 1, 2}), schema("id BIGINT"), is_small)
found: list[Any] = []
with TaskRecording([checked], "", 1, checks=DeclaredChecks({checked.token: rules})).active():
    for frame in (spark.range(3), spark.range(8)):
        try:
            found.append([each.passed for each in publish(frame, checked).checks[None]])
        except CheckFailed as error:
            found.append([each.found for each in error.results])
result = {
    "rows": sorted(row.id for row in spark.read.parquet(f"{lake}/orders").collect()),
    "metrics": {name: published.metrics[name] for name in ("rows", "files")},
    "pinned": pinned.count(),
    "empty": publish(spark.range(0), empty).metrics["rows"],
    "failed": failed,
    "checks": found,
    "checked": read(checked).count(),
    "tags": tags,
    "classic": error_of(SparkProfile()),
    "other server": error_of(SparkProfile(remote="sc://localhost:1")),
}
sys.stdout.write(json.dumps(result))
