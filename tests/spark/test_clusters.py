"""The flows of this repository, unchanged, on a cluster of processes as `deployments/spark-standalone` starts it."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assetflow.spark.java import use_java
from tests.environment.examples import commands, with_our_python
from tests.environment.needs import listens
from tests.environment.prefect_server import PrefectServer, free_port
from tests.environment.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.prefect, pytest.mark.timeout(400)]

JAVA_OPTIONS = os.environ["SPARK_SUBMIT_OPTS"]
SMALL = {"spark.executor.memory": "600m", "spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
SMALL["spark.executor.extraJavaOptions"] = JAVA_OPTIONS
DAEMON = {"SPARK_UI_PORT": "0", "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS}


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a master with two workers of one core each."""
    use_java()
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    processes: list[subprocess.Popen[bytes]] = []

    def start(command: str, log: Path, **settings: str) -> None:
        env = with_our_python(os.environ) | DAEMON | settings
        with log.open("ab") as output:
            shell = ["/bin/sh", "-ec", command]
            processes.append(
                subprocess.Popen(shell, cwd=tmp_path, env=env, stdout=output, stderr=output, start_new_session=True)
            )

    as_master, as_worker = commands("spark-standalone")
    try:
        start(as_master, tmp_path / "master.log", SPARK_PORT=str(port))
        until(lambda: listens(port))
        for number in (1, 2):
            log = tmp_path / f"worker-{number}.log"
            work = str(tmp_path / f"worker-{number}")
            start(as_worker, log, SPARK_MEMORY="1200M", SPARK_MASTER=address, SPARK_WORK=work)
            until(lambda log=log: "Successfully registered with master" in log.read_text(errors="replace"))
        yield address
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_the_flows_run_unchanged(
    master: str, child: Callable[..., Any], tmp_path: Path, prefect_server: PrefectServer
) -> None:
    settings = {"ASSETFLOW_SPARK_MASTER": master, "ASSETFLOW_SPARK_CONF": json.dumps(SMALL)}
    expected = {"master": master, "by city": {"London": 200.0, "New York": 40.0}, "hours": 71, "rows": [3322, 26115]}
    assert child("flows_child.py", **prefect_server.env, **settings, FLOWS_LAKE=str(tmp_path / "lake")) == expected
