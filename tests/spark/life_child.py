"""What a process sees of errors, stops and the end of Spark, in the mode that the environment names."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from timeit import timeit
from typing import Any
from unittest.mock import patch

from pyspark.sql import functions as F  # noqa: N812 (Spark's name for it)

from assetflow.core.values.assets import Asset
from assetflow.spark.connect import LocalServer
from assetflow.spark.publish import publish
from assetflow.spark.session import get_session, lives
from assetflow.spark.watch import is_remote, tagged

lake = Path(sys.argv[1])


def error_of(attempt: Callable[[], Any]) -> str:
    try:
        return f"no error: {attempt()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def divided(spark: Any) -> Any:
    def divide(number: int) -> int:
        return 1 // (number - 2)

    return spark.range(5).select(F.udf(divide, "int")("id").alias("id"))


def stop_everything(spark: Any) -> str:
    """Do in a task what scripts do at their end, and then fail."""
    with patch("assetflow.spark.session.is_task_running", lambda: True), tagged(spark, "task"):
        try:
            raise ValueError("order 17 has no customer")
        finally:
            spark.newSession().stop()
            spark.stop()
            if not is_remote():
                spark.sparkContext.stop()


def kill_spark(spark: Any) -> None:
    server = LocalServer.recorded()
    pid = server.pid if server else spark._jvm.java.lang.ProcessHandle.current().pid()
    os.kill(pid, signal.SIGKILL)


def die_in_task() -> str:
    with tagged(get_session(), "dies"):
        kill_spark(get_session())
        return "done"


spark = get_session()
result: dict[str, Any] = {
    "udf": error_of(lambda: publish(divided(spark), Asset(f"file://{lake}/udf"))),
    "delta": error_of(lambda: publish(spark.range(3), Asset(f"file://{lake}/delta"), format="delta")),
    "sql": error_of(lambda: publish(spark.sql("SELECT raise_error('no') AS id"), Asset(f"file://{lake}/sql"))),
    "stopped": error_of(lambda: stop_everything(spark)),
    "same": get_session() is spark and spark.range(3).count() == 3,
}
rounds = [(timeit(lambda: lives(spark), number=1), timeit(spark.range(3).count, number=1)) for _ in range(20)]
asked, counted = zip(*rounds, strict=True)
result["lives"] = lives(spark)
result["share"] = min(asked) / min(counted)
result["died"] = error_of(die_in_task)
again = get_session()
result["again"] = again is not spark and again.range(4).count()
again.stop()
final = get_session()
result["final"] = final is not again and final.range(5).count()
final.stop()
sys.stdout.write("\n" + json.dumps(result))
