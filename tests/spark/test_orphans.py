"""On a Connect server, the Spark work of a flow run ends when that is cancelled, or run again after it was killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from assetflow.spark.connect import own_local_server, stop_recorded_server
from assetflow.spark.java import use_java
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.prefect, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
SECONDS_TO_STOP = 20.0
STILL = 1.5


class Endless:
    """Runs of a flow whose Spark job does not end, as Prefect knows them."""

    def __init__(self, server: PrefectServer, folder: Path, spark: str) -> None:
        self.folder = folder
        # Prefect copies the folder of a flow for each run, and again for its hooks, into the working directory.
        self.code, self.work = folder / "code", folder / "work"
        self.code.mkdir()
        self.work.mkdir()
        shutil.copy(Path(__file__).with_name("endless_flows.py"), self.code)
        self.env = server.env | {
            "ASSETFLOW_SPARK_REMOTE": spark,
            "ENDLESS_FOLDER": str(folder),
            "PYTHONPATH": str(ROOT),
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PREFECT_RUNNER_POLL_FREQUENCY": "2",
        }
        self.http = server.http()
        (folder / "hold").touch()
        self.processes: list[subprocess.Popen[bytes]] = []

    def run(self, **deployment: Any) -> str:
        """A flow run that waits for somebody who runs it."""
        flow = self._post("/flows/", {"name": "endless"})["id"]
        body = {"name": f"endless-{uuid4().hex[:8]}", "flow_id": flow, "path": str(self.code)}
        body["entrypoint"] = "endless_flows.py:endless"
        made = self._post("/deployments/", body | deployment)["id"]
        return self._post(f"/deployments/{made}/create_flow_run", {"state": {"type": "SCHEDULED"}})["id"]

    def start(self, run: str, **env: str) -> subprocess.Popen[bytes]:
        """The process of a flow run, as a worker starts it."""
        command = [sys.executable, "-m", "prefect.engine"]
        given = self.env | {"PREFECT__FLOW_RUN_ID": run} | env
        return self.spawn(command, given)

    def spawn(self, command: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / "run.log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self.work, env=env, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)
        return process

    def close(self) -> None:
        (self.folder / "hold").unlink()
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)
        self.http.close()

    def set_state(self, run: str, **state: Any) -> None:
        self._post(f"/flow_runs/{run}/set_state", {"state": state, "force": True})

    def state(self, run: str) -> str:
        return self.http.get(f"/flow_runs/{run}").raise_for_status().json()["state_type"]

    def works(self) -> bool:
        """Whether Spark is at work, as it shows within a moment."""
        before = self._beats()
        time.sleep(STILL)
        return self._beats() > before

    def _beats(self) -> int:
        beat = self.folder / "beat"
        return beat.stat().st_size if beat.exists() else 0

    def _post(self, path: str, body: Any) -> Any:
        return self.http.post(path, json=body).raise_for_status().json()


@pytest.fixture(scope="module")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ASSETFLOW_HOME", str(tmp_path_factory.mktemp("connect")))
        # Set here, so that it is what it was before at the end.
        environment.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", "")
        use_java()
        try:
            url = own_local_server("local[2]", {})
            yield f"{url}/;token={os.environ['SPARK_CONNECT_AUTHENTICATE_TOKEN']}"
        finally:
            stopped = stop_recorded_server()
        assert stopped


@pytest.fixture
def endless(prefect_server: PrefectServer, tmp_path: Path, spark_server: str) -> Iterator[Endless]:
    runs = Endless(prefect_server, tmp_path, spark_server)
    try:
        yield runs
    finally:
        runs.close()


def test_what_a_killed_run_left_is_ended_by_the_next_process_of_the_run(endless: Endless) -> None:
    run = endless.run()
    process = endless.start(run)
    until(endless.works)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    until(endless.works, told=lambda: "something else has told Spark")
    endless.set_state(run, type="SCHEDULED", name="AwaitingRetry")
    assert endless.start(run, ENDLESS_AGAIN="yes").wait(120) == 0, (endless.folder / "run.log").read_text()[-3000:]
    until(lambda: not endless.works(), seconds=SECONDS_TO_STOP)
    assert endless.state(run) == "COMPLETED"
    assert not (endless.folder / "lake").exists()


def test_a_run_that_is_cancelled_in_prefect(endless: Endless) -> None:
    pool = f"endless-{uuid4().hex[:8]}"
    endless.http.post("/work_pools/", json={"name": pool, "type": "assetflow"}).raise_for_status()
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", pool, "--type", "assetflow"]
    endless.spawn(command, endless.env)
    run = endless.run(work_pool_name=pool)
    until(endless.works)
    endless.set_state(run, type="CANCELLING", name="Cancelling")
    until(lambda: not endless.works(), seconds=SECONDS_TO_STOP)
    until(lambda: endless.state(run) == "CANCELLED", seconds=60)
    assert not (endless.folder / "lake").exists()
