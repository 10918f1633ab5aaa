"""Publish partition `a` and be killed between staging and swap, as a script."""

import os
import sys

from assetflow.core.values.assets import Asset
from assetflow.spark.publish import publish
from assetflow.spark.session import SparkProfile, get_session


def main(path: str, mode: str) -> None:
    os.environ["ASSETFLOW_CRASH_AT"] = "between-staging-and-swap"
    spark = get_session(SparkProfile(master="local[1]"))
    frame = spark.range(7)
    if mode == "key":
        publish(frame, Asset(f"file://{path}"), partition_key="a")
    else:
        publish(frame.selectExpr("id", "'a' AS letter"), Asset(f"file://{path}"), partition_column="letter")


if __name__ == "__main__":
    main(*sys.argv[1:])
