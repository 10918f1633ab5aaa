"""A work pool with its worker, and deployments of the flows in `chain_flows` that run in it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from assetflow.core.values.assets import Asset
from tests.integration.installation import Installation

ROOT = Path(__file__).parents[1]
FLOWS = Path("benchmarks/chain_flows.py")
SECONDS = 180.0
SECONDS_TO_STOP = 60.0
# Of /proc/PID/stat behind the name: CPU time of the process and of its children that have ended.
_PARENT, _TIMES = 1, slice(11, 15)


class Pool:
    """A work pool of one kind, served by a worker that runs nothing else.

    Parameters:
        kind: the type of the pool.
        variables: job variables of all deployments.
        settings: environment variables of the worker.
    """

    def __init__(
        self, site: Installation, name: str, kind: str, variables: Mapping[str, object], settings: Mapping[str, str]
    ) -> None:
        self._site = site
        self.name = f"{name}-{site.mark}"
        self._notes = site.home / f"{name}.notes"
        self._notes.touch()
        environment = {"CHAIN_MARK": self.name, "CHAIN_NOTES": str(self._notes)}
        self._variables = {**variables, "env": environment}
        command = [sys.executable, "-m", "prefect", "worker", "start", "--type", kind, "--pool", self.name]
        env = site.server.env | {"ASSETFLOW_HOME": str(site.home), "TMPDIR": str(site.home)} | dict(settings)
        with (site.home / f"{name}.log").open("wb") as log:
            self._worker = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        site.until(lambda: site.http.get(f"/work_pools/{self.name}").json().get("status") == "READY", SECONDS)

    def asset(self, name: str) -> Asset:
        """Return an asset of this pool's own, as its flows name it."""
        return Asset(f"{name}-{self.name}")

    def deploy(self, flow: str, name: str, schedule: Asset, source: Path = FLOWS) -> None:
        """Deploy a flow of a source file to this pool."""
        deployment = self._site.deploy(f"{name}-{self.name}", schedule)
        folder = {"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}
        body = {
            "work_pool_name": self.name,
            "entrypoint": f"{source}:{flow}",
            "pull_steps": [folder],
            "job_variables": self._variables,
        }
        self._site.http.patch(f"/deployments/{deployment}", json=body).raise_for_status()

    def update(self, name: str) -> float:
        """Update an asset of this pool, and return when."""
        before = time.time()
        self._site.update(self.asset(name).uri)
        return before

    def noted(self, name: str) -> list[float]:
        """Return the times at which tasks noted this name."""
        lines = (line.split() for line in self._notes.read_text().splitlines())
        return [float(at) for _, noted, at in lines if noted == name]

    def wait_for_notes(self, name: str, number: int) -> float:
        """Wait until a name was noted so often, and return the time of the last note."""
        self._site.until(lambda: len(self.noted(name)) >= number, SECONDS)
        return self.noted(name)[number - 1]

    def rest(self) -> None:
        """Wait until no process of a flow run is left, so that the CPU time of all runs is counted."""
        self._site.until(lambda: not self._is_busy(), SECONDS)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the worker and of all that it started."""
        total = 0
        for pid in self._processes():
            with suppress(OSError):
                total += sum(map(int, _stat(pid)[_TIMES]))
        return total / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Stop the worker."""
        self._worker.terminate()
        try:
            self._worker.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()
            raise

    def _is_busy(self) -> bool:
        for pid in self._processes():
            with suppress(OSError):
                if b"PREFECT__FLOW_RUN_ID=" in Path(f"/proc/{pid}/environ").read_bytes():
                    return True
        return False

    def _processes(self) -> list[int]:
        """Return the worker and its descendants, parents first."""
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                children.setdefault(int(_stat(int(entry.name))[_PARENT]), []).append(int(entry.name))
        found = [self._worker.pid]
        for each in found:
            found += children.get(each, [])
        return found


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
