"""Publishes with Spark and checks, again and again, until it is killed: each fifth publication fails its checks.

It writes a hundred rows with the number of the publication: as a Parquet dataset, as one of two partitions, and as a
Delta table, which `deltalake` commits over the files that have passed. What is noted as done is not made again.
"""

import os
import sys
from pathlib import Path

import pyarrow.parquet
from deltalake import write_deltalake

from assetflow.authoring.checks import DeclaredChecks
from assetflow.authoring.recording import TaskRecording
from assetflow.checks import at_least, bounds, unique
from assetflow.core.values.assets import Asset
from assetflow.errors import CheckFailed
from assetflow.spark.publish import publish
from assetflow.spark.session import SparkProfile, get_session

ROWS = 100
BAD_EVERY = 5

if __name__ == "__main__":
    lake, life = Path(sys.argv[1]), int(sys.argv[2])
    notes, whole, keyed = lake / "notes", Asset((lake / "whole").as_uri()), Asset((lake / "keyed").as_uri())
    rules = [at_least(ROWS // 2), bounds("refused", 0, 0), unique("row")]
    checks = DeclaredChecks({whole.token: rules, keyed.token: rules})
    spark = get_session(
        SparkProfile(master="local[2]", conf={"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"})
    )
    while True:
        number = len(notes.read_text().splitlines()) if notes.exists() else 0
        is_bad = number % BAD_EVERY == BAD_EVERY - 1
        rows = spark.range(0, ROWS, 1, 2).selectExpr(
            "id AS row",
            f"CAST({number} AS BIGINT) AS number",
            f"{int(is_bad)} AS refused",
            "IF(id % 2 = 0, 'a', 'b') AS half",
        )
        held_back = 0
        with TaskRecording((whole, keyed), f"run-{number}", life, checks=checks).active() as recording:
            for asset, column in ((whole, None), (keyed, "half")):
                try:
                    publish(rows, asset, partition_column=column)
                except CheckFailed:
                    held_back += 1
        assert held_back == 2 * is_bad
        # What starts consumers is the recording: what was held back has no update in it.
        assert len(recording.fail().held_back) == 3 * is_bad
        assert not recording.fail().events
        if not is_bad:
            write_deltalake(lake / "delta", pyarrow.parquet.read_table((lake / "whole").resolve()), mode="overwrite")
        with notes.open("a") as file:
            file.write("done\n")
            file.flush()
            os.fsync(file.fileno())
