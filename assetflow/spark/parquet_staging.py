"""Stage data as Parquet beside a place that Spark writes to directly, for its checks. Contract 12.4.

The staged data is the only table of a database of its own, because dropping a database is how Spark deletes files
wherever it can write them, in a classic session and through Connect.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from assetflow.spark.data_files import AttemptId
from assetflow.spark.watch import reason_of
from assetflow.spark.writes import Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("assetflow.spark")


@contextmanager
def staged_as_parquet(write: Write, beside: str, attempt: AttemptId) -> Generator[DataFrame]:
    """Write the data once into a folder that nobody reads, and delete it at the end of the block.

    Parameters:
        beside: the beginning of the folder's URI.
    """
    spark = write.df.sparkSession
    own = uuid4().hex
    database, place = f"spark_catalog.assetflow_{own}", f"{beside}-{attempt.task_run}-{attempt.number}-{own[:8]}"
    quoted = place.replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"CREATE DATABASE {database} LOCATION '{quoted}'")
    try:
        write.df.write.format("parquet").saveAsTable(f"{database}.data")
        yield spark.read.table(f"{database}.data")
    finally:
        try:
            spark.sql(f"DROP DATABASE {database} CASCADE")
        except Exception as error:
            logger.warning("The staged data in %s could not be deleted: %s", place, reason_of(error))
