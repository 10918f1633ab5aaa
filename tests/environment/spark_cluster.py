"""A standalone Spark cluster from the installed package: a master and workers, each a process that can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.environment.prefect_server import free_port

SPARK_HOME = Path(pyspark.__file__).parent
SECONDS = 60.0
WORKERS = 2


class SparkCluster:
    """A master and two workers of one core each, on free ports; their files lie in `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        self.master_url = f"spark://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._master: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        arguments = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"]
        self._master = self._run("master", "org.apache.spark.deploy.master.Master", *arguments)
        _until(lambda: _listens(self.port))
        self.fill_up()

    def fill_up(self) -> None:
        """Start workers until there are two."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < WORKERS:
            number = len(list(self.home.glob("worker-*.log"))) + 1
            folder = self.home / f"worker-{number}"
            arguments = ["--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1200M", "-d", str(folder)]
            worker = self._run(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *arguments, self.master_url)
            self.workers.append(worker)
            log = self.home / f"worker-{number}.log"
            _until(lambda log=log: "Successfully registered with master" in log.read_text(errors="replace"))

    def stop(self) -> None:
        for process in (*self.workers, self._master):
            if process is not None:
                kill(process)

    def _run(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.home / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
                env=os.environ | {"SPARK_DAEMON_MEMORY": "256m"},
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


@contextmanager
def spark_cluster(home: Path) -> Iterator[SparkCluster]:
    """A cluster that runs for as long as the block."""
    from assetflow.spark.java import use_java

    use_java()
    cluster = SparkCluster(home)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def kill(worker: subprocess.Popen[bytes]) -> None:
    """End a process at once, with the executors that it started."""
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _until(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "Spark's cluster did not come up"
        time.sleep(0.1)
