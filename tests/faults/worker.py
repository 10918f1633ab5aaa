"""A real Prefect worker that executes flow runs in processes of their own, and all ways to lose it or them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.environment.waiting import until

if TYPE_CHECKING:
    from tests.faults.world import World

ROOT = Path(__file__).parents[2]
PROC = Path("/proc")


class Worker:
    """A worker of a world, a process that can be killed, and the deployment that it executes.

    Attributes:
        ordered: the flow runs that were ordered.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._pool = f"faults-{world.mark}"
        self.notes = world.home / "worked.notes"
        self._log = world.home / "worker.log"
        self.ordered: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        world.post("/work_pools/", {"name": self._pool, "type": "process"})
        self.deployment = world.post(
            "/deployments/",
            {
                "name": "worked",
                "flow_id": world.post("/flows/", {"name": f"worked-{world.mark}"})["id"],
                "work_pool_name": self._pool,
                "entrypoint": "tests/faults/worked_flow.py:work",
                "pull_steps": [{"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}],
            },
        )["id"]

    def start(self) -> None:
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", self._pool, "--type", "process"]
        # What is killed leaves its temporary folders behind.
        more = {"PYTHONPATH": str(ROOT), "PREFECT_WORKER_QUERY_SECONDS": "1", "TMPDIR": str(self._world.home)}
        env = self._world.env | more
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        return self._log.read_text()

    def kill(self) -> None:
        """The worker alone dies (SIGKILL)."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """The worker is ended as systemd does: SIGTERM, and what is left after a minute is killed."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.lose_power()

    def lose_power(self) -> None:
        """The worker and all that it started die at once."""
        self.freeze()
        self.kill_runs()
        self.kill()

    def freeze(self) -> None:
        """The worker and all that it started stand still."""
        for pid in (self.process.pid, *self.run_processes()):
            _send(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in (self.process.pid, *self.run_processes()):
            _send(pid, signal.SIGCONT)

    def kill_runs(self) -> None:
        """The processes of flow runs die (SIGKILL)."""
        for pid in self.run_processes():
            _send(pid, signal.SIGKILL)

    def close(self) -> None:
        if self._process is not None:
            self.lose_power()
            self._world.until(lambda: not self.run_processes())
        self._world.http.delete(f"/deployments/{self.deployment}")
        self._world.http.delete(f"/work_pools/{self._pool}")

    # Flow runs

    def order(self, *uris: str, gate: Path | None = None, crash_at: str = "") -> str:
        """Order a flow run that updates these assets; its id.

        Parameters:
            gate: a file that the task waits for in its middle.
            crash_at: the place at which the flow run's process kills itself.
        """
        parameters = {"uris": uris, "notes": str(self.notes), "gate": str(gate) if gate else None}
        env = {"ASSETFLOW_CRASH_AT": crash_at} if crash_at else {}
        body = {
            "parameters": parameters,
            "job_variables": {"env": env},
            "state": {"type": "SCHEDULED", "name": "Scheduled"},
        }
        run = self._world.post(f"/deployments/{self.deployment}/create_flow_run", body)["id"]
        self.ordered.append(run)
        return run

    def state(self, run: str) -> str:
        return self._world.http.get(f"/flow_runs/{run}").json()["state_type"]

    def retry(self, run: str) -> None:
        """What the button "Retry" does; a run that nobody executes any more is marked as crashed before."""
        crashed = {"type": "CRASHED", "name": "Crashed"}
        again = {"type": "SCHEDULED", "name": "AwaitingRetry"}
        now = {"state_details": {"scheduled_time": datetime.now(UTC).isoformat()}}
        for state in (crashed, again | now):
            self._world.post(f"/flow_runs/{run}/set_state", {"state": state, "force": True})

    def work_off(self) -> None:
        """With a worker that nobody disturbs, have all runs that were ordered end well, whatever became of them."""
        self.stop()
        self._world.until(lambda: not self.run_processes())
        self.start()
        for run in self.ordered:
            if self.state(run) != "COMPLETED":
                self.retry(run)
        until(self._are_all_completed, seconds=600, told=lambda: f"{self._states()}\n{self.log[-5000:]}")
        self._world.until(lambda: not self.run_processes())

    def _are_all_completed(self) -> bool:
        """Whether all ordered runs ended well. A run that Prefect was too busy for is retried."""
        states = self._states()
        for run, state in states.items():
            if state in ("FAILED", "CRASHED"):
                self.retry(run)
        return set(states.values()) <= {"COMPLETED"}

    def _states(self) -> dict[str, str]:
        return {run: self.state(run) for run in self.ordered}

    def noted(self, word: str) -> Sequence[dict[str, Any]]:
        """The lines of the notes that have this word."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [line for line in map(json.loads, lines) if word in line]

    @property
    def accepted(self) -> list[str]:
        """The tokens of the updates whose tasks completed."""
        return [line["accepted"] for line in self.noted("accepted")]

    def run_processes(self) -> list[int]:
        """The processes of flow runs that were started here, orphans too."""
        ours = f"ASSETFLOW_HOME={self._world.home}".encode()
        found: list[int] = []
        for entry in PROC.glob("[0-9]*"):
            with suppress(OSError):
                environ = (entry / "environ").read_bytes()
                if ours in environ and b"PREFECT__FLOW_RUN_ID=" in environ:
                    found.append(int(entry.name))
        return found


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
