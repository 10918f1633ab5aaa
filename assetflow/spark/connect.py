"""Spark's own shared local Connect server: one for each `ASSETFLOW_HOME`, started by PySpark when first asked for."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from assetflow.errors import SparkUnreachable
from assetflow.settings import get_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("assetflow.spark")

_SECONDS_TO_STOP = 20.0


def discovery_file() -> Path:
    """Where Spark's local Connect server of this `ASSETFLOW_HOME` is recorded: each home has a server of its own."""
    return get_settings().home / "spark" / "connect.json"


def own_local_server(master: str, conf: Mapping[str, str]) -> str:
    """The address of the local server of this `ASSETFLOW_HOME`; one is started if none runs, with this configuration.

    The token that it asks for is in the environment of this process then.

    Raises:
        SparkUnreachable: it did not start.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql.connect.local_server import reuse_or_start_local_connect_server

    discovery_file().parent.mkdir(parents=True, exist_ok=True)
    os.environ["SPARK_LOCAL_CONNECT_DISCOVERY"] = str(discovery_file())
    try:
        return reuse_or_start_local_connect_server(master, dict(conf))
    except PySparkRuntimeError as error:
        raise SparkUnreachable(
            f"Spark's local Connect server did not start: {error}",
            where=str(discovery_file().parent),
            fix="Its log lies there in logs; without ASSETFLOW_SPARK_REMOTE=local a classic session is used",
        ) from error


def stop_recorded_server() -> bool:
    """Stop the local Connect server of this `ASSETFLOW_HOME`, if one runs; others are left alone."""
    if not discovery_file().exists():
        return False
    from pyspark.sql.connect.local_server import Discovery, LocalConnectServer

    with Discovery(str(discovery_file())) as discovery:
        server = LocalConnectServer(discovery)
        stopped = bool(server.stop())
    if stopped and server.pid is not None:
        _wait_for_end(server.pid)
    return stopped


def _wait_for_end(pid: int) -> None:
    """Wait until a process has ended, so that nothing of it is left when the caller goes on."""
    deadline = monotonic() + _SECONDS_TO_STOP
    while monotonic() < deadline:
        state = subprocess.run(["ps", "-p", str(pid), "-o", "stat="], capture_output=True, text=True, check=False)
        if state.stdout.strip()[:1] in ("", "Z"):
            return
        sleep(0.1)
    logger.warning("Spark's local Connect server (process %d) was told to stop and is still there", pid)


def give_up_early(session: SparkSession) -> None:
    """Have a session retry for seconds: a local server that is gone does not come back.

    PySpark's own patience is ten minutes, also at the exit of a process that has long finished its work.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=6, max_backoff=1000)])
