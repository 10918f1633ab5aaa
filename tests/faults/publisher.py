"""Publishes with Spark again and again, until it is killed: a new state of one dataset, more rows to another.

A state of the first is a hundred rows in four files, all with its number. To the second, attempt after attempt of one
task run appends ten rows; what is noted as done is not made again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from assetflow.authoring.recording import TaskRecording
from assetflow.core.values.assets import Asset
from assetflow.spark.publish import publish
from assetflow.spark.session import SparkProfile, get_session

state, rows, notes, life = Asset(sys.argv[1]), Asset(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])

spark = get_session(
    SparkProfile(master="local[2]", conf={"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"})
)
while True:
    number = len(notes.read_text().splitlines()) if notes.exists() else 0
    with TaskRecording((state, rows), f"run-{number}", life).active():
        publish(spark.range(0, 100, 1, 4).selectExpr(f"{number} AS id"), state)
        publish(spark.range(0, 10, 1, 2).selectExpr(f"{number} AS id"), rows, mode="append")
    with notes.open("a") as file:
        file.write("done\n")
        file.flush()
        os.fsync(file.fileno())
