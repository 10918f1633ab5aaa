"""The work pool type `assetflow` on a real Prefect server: its runs are forked, else it is a process pool."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until
from tests.integration.installation import PatientClient

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(400)]

FLOW = """
import os, time
from pathlib import Path
from prefect import flow

@flow(log_prints=True)
def report(name, until_there=""):
    with open(name, "a") as file:
        file.write(f"{os.getpid()} {os.getppid()} VERSION ")
    print("said by the flow")
    while until_there and not Path(until_there).exists():
        time.sleep(0.1)
"""
ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


class Pool:
    """A pool with a worker, and a deployment of one flow in a folder."""

    def __init__(self, server: PrefectServer, home: Path) -> None:
        self.home = home
        self.name = f"warm-{uuid4().hex[:8]}"
        self.http = PatientClient(base_url=server.api_url, headers=server.headers, timeout=30)
        self.write(FLOW)
        # Asking at intervals must not be what finds the runs.
        self.env = server.env | {"PREFECT_WORKER_QUERY_SECONDS": "300", "TMPDIR": str(home)}
        create = [sys.executable, "-m", "prefect", "work-pool", "create", "--type", "assetflow", self.name]
        subprocess.run(create, env=self.env, check=True, capture_output=True)
        self.log = home / "worker.log"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.process = self.start_worker()
        self.deployment = self.deploy("flows.py:report")
        self.until(self.sockets)

    def sockets(self) -> set[Path]:
        """The sockets at which templates listen, or have listened until they were killed."""
        return set(self.home.glob("assetflow-worker-*/*.socket"))

    def start_worker(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", self.name]
        with self.log.open("ab") as log:
            self.workers.append(subprocess.Popen(command, env=self.env, cwd=self.home, stdout=log, stderr=log))
        return self.workers[-1]

    def write(self, code: str) -> None:
        (self.home / "flows.py").write_text(code)

    def deploy(self, entrypoint: str, **job_variables: object) -> str:
        folder = {"prefect.deployments.steps.set_working_directory": {"directory": str(self.home)}}
        body = {
            "name": uuid4().hex,
            "flow_id": self.post("/flows/", {"name": "report"})["id"],
            "work_pool_name": self.name,
            "entrypoint": entrypoint,
            "pull_steps": [folder],
            "job_variables": job_variables,
        }
        return self.post("/deployments/", body)["id"]

    def post(self, path: str, body: object) -> Any:
        answer = self.http.post(path, json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def order(self, deployment: str | None = None, **parameters: object) -> str:
        body = {"parameters": {"name": uuid4().hex} | parameters, "state": {"type": "SCHEDULED"}}
        return self.post(f"/deployments/{deployment or self.deployment}/create_flow_run", body)["id"]

    def state(self, run: str) -> str:
        return self.http.get(f"/flow_runs/{run}").json()["state_type"]

    def ended(self, run: str) -> str:
        self.until(lambda: self.state(run) in ENDED)
        return self.state(run)

    def note(self, name: str) -> tuple[int, int, str]:
        """What the flow has written: its process, that process's parent, and the version of the flow."""
        file = self.home / name
        self.until(lambda: file.exists() and len(file.read_text().split()) == 3)
        pid, parent, version = file.read_text().split()
        return int(pid), int(parent), version

    def said(self, run: str) -> str:
        wanted = {"logs": {"flow_run_id": {"any_": [run]}}, "limit": 200}
        return "\n".join(each["message"] for each in self.post("/logs/filter", wanted))

    def template(self) -> int | None:
        """The process id of the worker's template that imports nothing of a user's."""
        for each in Path("/proc").iterdir():
            with suppress(OSError):
                is_ours = each.name.isdigit() and f"PPid:\t{self.process.pid}\n" in (each / "status").read_text()
                if is_ours and re.search(rb"assetflow.worker.template\0[^\0]*\0$", (each / "cmdline").read_bytes()):
                    return int(each.name)
        return None

    def until(self, condition: Callable[[], object]) -> None:
        until(condition, told=lambda: self.log.read_text()[-4000:])

    def close(self) -> None:
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(60)
        with suppress(httpx.HTTPError):
            self.http.delete(f"/work_pools/{self.name}")
        self.http.close()


@pytest.fixture(scope="module")
def pool(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    pool = Pool(prefect_server, tmp_path_factory.mktemp("pool"))
    yield pool
    pool.close()


@pytest.fixture
def own_pool(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Pool]:
    """A pool for one test, which may kill its worker."""
    pool = Pool(prefect_server, tmp_path)
    yield pool
    pool.close()


def test_runs_are_heard_of_and_forked_and_an_edited_flow_counts(pool: Pool) -> None:
    for version in ("one", "two"):
        pool.write(FLOW.replace("VERSION", version))
        run = pool.order(name=version)
        assert pool.ended(run) == "COMPLETED"
        assert pool.note(version)[1:] == (pool.template(), version)
        for line in ("said by the flow", "Finished in state Completed"):
            pool.until(lambda run=run, line=line: line in pool.said(run))


def test_a_module_may_be_imported_before_the_fork(pool: Pool) -> None:
    (pool.home / "heavy.py").write_text("import os\nIMPORTED_BY = os.getpid()\n")
    (pool.home / "uses.py").write_text(FLOW.replace("os.getpid()", "__import__('heavy').IMPORTED_BY"))
    preloading = pool.deploy("uses.py:report", preload=["heavy"])
    # The template of these runs begins with the first of them, which does not wait for it.
    for number in range(20):
        assert pool.ended(pool.order(preloading, name=f"heavy{number}")) == "COMPLETED"
        imported_by, parent, _ = pool.note(f"heavy{number}")
        if imported_by == parent:
            return
    pytest.fail("no run found the module imported")


MODULES = """
import sys
from pathlib import Path
import assetflow
from assetflow import Asset, spark_task

@assetflow.task(inlets=[Asset("orders")], outlets=[Asset("report")])
def write(name):
    Path(name).write_text(" ".join(sys.modules))

@assetflow.flow
def report(name):
    write(name)
"""


def test_a_flow_run_finds_its_imports_in_the_template(pool: Pool) -> None:
    """What the template forgets, each run imports anew: SQLAlchemy alone takes half a second."""
    (pool.home / "modules.py").write_text(MODULES)
    home = pool.home / "assetflow"
    home.mkdir()
    # A ledger that cannot be read is none, after the modules that read one are imported.
    (home / "ledger.db").touch()
    deployment = pool.deploy("modules.py:report", env={"ASSETFLOW_HOME": str(home)})
    assert pool.ended(pool.order(deployment, name="imported")) == "COMPLETED"
    code = "import sys; from assetflow.worker import preload, template; preload.preload(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = set((pool.home / "imported").read_text().split()) - set(done.stdout.split())
    assert "modules" in late
    ours = ("assetflow.", "prefect.", "sqlalchemy.", "pydantic.")
    assert not [each for each in late if each.startswith(ours)]
    assert len(late) < 10, late


def test_a_cancelled_run_ends_with_its_process(pool: Pool) -> None:
    run = pool.order(name="cancelled", until_there="never")
    pid, parent, _ = pool.note("cancelled")
    assert parent == pool.template()
    pool.post(f"/flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})
    assert pool.ended(run) == "CANCELLED"
    pool.until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_killed_run_is_crashed(pool: Pool) -> None:
    run = pool.order(name="killed", until_there="never")
    os.kill(pool.note("killed")[0], signal.SIGKILL)
    assert pool.ended(run) == "CRASHED"


def test_a_killed_template_is_replaced(pool: Pool) -> None:
    run = pool.order(name="before", until_there="never")
    template, sockets = pool.note("before")[1], pool.sockets()
    os.kill(template, signal.SIGKILL)
    assert pool.ended(run) == "CRASHED"
    assert pool.ended(pool.order(name="between")) == "COMPLETED"
    pool.until(lambda: pool.template() not in (None, template))
    pool.until(lambda: pool.sockets() - sockets)
    assert pool.ended(pool.order(name="after")) == "COMPLETED"
    assert pool.note("after")[1] == pool.template()


@pytest.mark.parametrize(
    ("entrypoint", "reason"),
    [("broken.py:report", "SyntaxError"), ("flows.py:gone", "gone"), ("nowhere.py:report", "nowhere.py")],
)
def test_a_flow_that_cannot_be_loaded_says_why(pool: Pool, entrypoint: str, reason: str) -> None:
    (pool.home / "broken.py").write_text("def report(:\n")
    run = pool.order(pool.deploy(entrypoint))
    assert pool.ended(run) in ("FAILED", "CRASHED")
    pool.until(lambda: reason in pool.said(run))
    assert pool.ended(pool.order()) == "COMPLETED"


def test_a_run_goes_on_without_its_worker(own_pool: Pool) -> None:
    run = own_pool.order(name="alone", until_there="gate")
    template = own_pool.note("alone")[1]
    own_pool.process.kill()
    own_pool.process.wait()
    (own_pool.home / "gate").touch()
    assert own_pool.ended(run) == "COMPLETED"
    own_pool.until(lambda: not Path(f"/proc/{template}").exists())


def test_two_workers_start_each_run_once(own_pool: Pool) -> None:
    own_pool.start_worker()
    own_pool.until(lambda: len(own_pool.sockets()) == 2)
    runs = {f"run{number}": own_pool.order(name=f"run{number}") for number in range(8)}
    assert {own_pool.ended(run) for run in runs.values()} == {"COMPLETED"}
    for name in runs:
        own_pool.note(name)
