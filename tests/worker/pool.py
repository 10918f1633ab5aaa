"""A work pool of type `assetflow` with its worker, on a real Prefect server."""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from assetflow.worker import POOL_TYPE
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import SECONDS, until

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
OWN_COMMAND = f"{sys.executable} -m prefect.engine"
ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


class Pool:
    """A pool with a worker, and a deployment of one flow in a folder.

    Parameters:
        env: further variables of the worker's environment.
    """

    def __init__(self, server: PrefectServer, home: Path, **env: str) -> None:
        self.home = home
        self.name = f"warm-{uuid4().hex[:8]}"
        self.http = server.http()
        self.write(FLOW)
        # Asking at intervals must not be what finds the runs.
        self.env = server.env | {"PREFECT_WORKER_QUERY_SECONDS": "300", "TMPDIR": str(home)} | env
        # `prefect work-pool create` does the same, and takes seconds.
        self.post("/work_pools/", {"name": self.name, "type": POOL_TYPE})
        self.log = home / "worker.log"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.process = self.start_worker()
        self.deployment = self.deploy("flows.py:report")
        self.until(self.sockets)

    def sockets(self) -> set[Path]:
        """The sockets at which templates listen, or have listened until they were killed."""
        return set(self.home.glob("assetflow-worker-*/*.socket"))

    def listens(self) -> bool:
        """Return whether a template forks the next flow run."""
        commands = [Path(f"/proc/{each}/cmdline").read_text() for each in self.templates()]
        return any(f"{socket}\0" in command for socket in self.sockets() for command in commands)

    def start_worker(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", self.name]
        with self.log.open("ab") as log:
            self.workers.append(subprocess.Popen(command, env=self.env, cwd=self.home, stdout=log, stderr=log))
        return self.workers[-1]

    def write(self, code: str) -> None:
        (self.home / "flows.py").write_text(code)

    def deploy(self, entrypoint: str, **job_variables: object) -> str:
        folder = {"prefect.deployments.steps.set_working_directory": {"directory": str(self.home)}}
        return self._deploy(entrypoint, job_variables, pull_steps=[folder])

    def deploy_copied(self, entrypoint: str, **job_variables: object) -> str:
        """A deployment whose runs copy the folder to the one in which they start."""
        return self._deploy(entrypoint, job_variables, path=str(self.home / "code"))

    def _deploy(self, entrypoint: str, job_variables: object, **given: object) -> str:
        body = {
            "name": uuid4().hex,
            "flow_id": self.post("/flows/", {"name": "report"})["id"],
            "work_pool_name": self.name,
            "entrypoint": entrypoint,
            "job_variables": job_variables,
        }
        return self.post("/deployments/", body | given)["id"]

    def post(self, path: str, body: object) -> Any:
        answer = self.http.post(path, json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def order(self, deployment: str | None = None, **parameters: object) -> str:
        body = {"parameters": {"name": uuid4().hex} | parameters, "state": {"type": "SCHEDULED"}}
        return self.post(f"/deployments/{deployment or self.deployment}/create_flow_run", body)["id"]

    def state(self, run: str) -> str:
        return self.http.get(f"/flow_runs/{run}").json()["state_type"]

    def span(self, run: str) -> list[datetime]:
        """When a run began, and when it ended."""
        found = self.http.get(f"/flow_runs/{run}").json()
        return [datetime.fromisoformat(found[name]) for name in ("start_time", "end_time")]

    def ended(self, run: str, seconds: float = SECONDS) -> str:
        self.until(lambda: self.state(run) in ENDED, seconds)
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
        """The process id of the first worker's template that imports nothing of a user's."""
        return next(iter(_find(rb"assetflow.worker.template\0[^\0]*\0$", [self.process.pid])), None)

    def templates(self) -> list[int]:
        return _find(rb"assetflow.worker.template\0", [each.pid for each in self.workers])

    def children(self) -> list[int]:
        """The flow runs that templates have forked."""
        return _find(rb"assetflow.worker.template\0", self.templates())

    def clients(self) -> list[int]:
        return _find(rb"assetflow/worker/client.py\0", [each.pid for each in self.workers])

    def process_of(self, run: str) -> int | None:
        """The process that a worker has started for a run."""
        wanted = f"PREFECT__FLOW_RUN_ID={run}\0".encode()
        for each in _find(rb"", [each.pid for each in self.workers]):
            with suppress(OSError):
                if wanted in Path(f"/proc/{each}/environ").read_bytes():
                    return each
        return None

    def until(self, condition: Callable[[], object], seconds: float = SECONDS) -> None:
        until(condition, seconds=seconds, told=lambda: self.log.read_text()[-4000:])

    def close(self) -> None:
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(60)
        with suppress(httpx.HTTPError):
            self.http.delete(f"/work_pools/{self.name}")
        self.http.close()


def _find(command: bytes, parents: Sequence[int]) -> list[int]:
    """Return the processes that have one of these parents and such a command line."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if _parent(int(each.name)) in parents and re.search(command, (each / "cmdline").read_bytes()):
                found.append(int(each.name))
    return found


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
