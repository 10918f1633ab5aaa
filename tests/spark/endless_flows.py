"""A flow whose Spark job lasts as long as a file is there, and shows in another file that it lives."""

import os
from collections.abc import Iterator
from typing import Any

from assetflow import Asset, flow, spark_task

FOLDER = os.environ.get("ENDLESS_FOLDER", "")


@spark_task(outlets=[Asset(f"file://{FOLDER}/lake")])
def produce(spark: Any) -> Any:
    folder = FOLDER

    # In here: Spark's workers do not know this module.
    def beat(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import time

        for batch in batches:
            while os.path.exists(f"{folder}/hold"):  # noqa: PTH110
                with open(f"{folder}/beat", "a") as file:  # noqa: PTH123
                    file.write(".")
                time.sleep(0.1)
            yield batch

    return spark.range(0, 1, 1, 1).mapInPandas(beat, "id long")


@flow
def endless() -> None:
    if os.environ.get("ENDLESS_AGAIN"):
        look()
    else:
        # In a thread: the flow's own would be interrupted by any signal.
        produce.submit().wait()


@spark_task
def look(spark: Any) -> int:
    return spark.range(3).count()
