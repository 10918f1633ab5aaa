"""Spark as `deployments/` starts it: a standalone cluster, of processes that can be killed, and a Connect server."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.environment.examples import commands, with_our_python
from tests.environment.prefect_server import free_port
from tests.environment.waiting import until

# The commands are those of the example.
MASTER, WORKER = commands("spark-standalone")
(CONNECT,) = commands("spark-connect")
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
        self._master = self._run("master", MASTER, SPARK_PORT=str(self.port))
        until(lambda: _listens(self.port))
        self.fill_up()

    def fill_up(self) -> None:
        """Start workers until there are two."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < WORKERS:
            number = len(list(self.home.glob("worker-*.log"))) + 1
            settings = {"SPARK_MASTER": self.master_url, "SPARK_WORK": str(self.home / f"worker-{number}")}
            self.workers.append(self._run(f"worker-{number}", WORKER, SPARK_MEMORY="1200M", **settings))
            log = self.home / f"worker-{number}.log"
            until(lambda log=log: "Successfully registered with master" in log.read_text(errors="replace"))

    def stop(self) -> None:
        for process in (*self.workers, self._master):
            if process is not None:
                kill(process)

    def _run(self, name: str, command: str, **settings: str) -> subprocess.Popen[bytes]:
        return start(command, self.home / f"{name}.log", SPARK_DAEMON_MEMORY="256m", **settings)


def start(command: str, log: Path, **settings: str) -> subprocess.Popen[bytes]:
    """A process of Spark's, from the words of an example."""
    with log.open("ab") as output:
        return subprocess.Popen(
            ["/bin/sh", "-ec", command],
            env=with_our_python(os.environ) | {"SPARK_UI_PORT": "0"} | settings,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
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


@contextmanager
def connect_server(home: Path) -> Iterator[str]:
    """The address of a Connect server on two cores that runs for as long as the block."""
    from assetflow.spark.java import use_java

    use_java()
    port = free_port()
    log = home / "connect.log"
    process = start(CONNECT, log, SPARK_PORT=str(port), SPARK_MASTER="local[2]")
    try:
        until(lambda: _listens(port) or process.poll() is not None)
        assert process.poll() is None, log.read_text()[-3000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        kill(process)


def kill(worker: subprocess.Popen[bytes]) -> None:
    """End a process at once, with the executors that it started."""
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
