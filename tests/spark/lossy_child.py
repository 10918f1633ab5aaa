"""A flow that publishes twice while its cluster loses workers; the second time there is a limit to its time."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from assetflow import Asset, flow, spark_task

uri, hold, reached = sys.argv[1:]
data = Asset(uri)


def wait(batches: Iterator[Any]) -> Iterator[Any]:
    """Spark's workers run this: the last part is not made as long as a file is there."""
    for batch in batches:
        while len(batch) and batch["id"].max() == 3 and os.path.exists(hold):  # noqa: PTH110
            with open(reached, "a"):  # noqa: PTH123
                time.sleep(0.05)
        yield batch


@spark_task(outlets=[data])
def produce(spark: Any, rows: int) -> Any:
    return spark.range(0, rows, 1, rows).mapInPandas(wait, "id long")


@flow
def run(rows: int, seconds: float | None) -> str:
    state = produce.with_options(timeout_seconds=seconds)(rows, return_state=True)
    return str(state.name)


names = [run(4, None)]
with open(reached, "a") as file:  # noqa: PTH123
    file.write("first\n")
while not os.path.exists(hold):  # noqa: PTH110
    time.sleep(0.05)
names.append(run(5, 10.0))
sys.stdout.write("\n" + json.dumps(names))
