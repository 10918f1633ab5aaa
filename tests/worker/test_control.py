"""What Prefect controls of a flow run holds on the warm worker: hooks, time limits, and how many run at once."""

import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from tests.worker.pool import OWN_COMMAND, Pool

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(400)]


def cancel(pool: Pool, run: str) -> None:
    pool.post(f"/flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})


DIRTY = """
import os, sys, time
from pathlib import Path
from prefect import flow

HOME = Path(__file__).parent
(HOME / f"imported-by-{os.getpid()}").touch()
os.environ["LEFT"] = "by the module"
os.chdir("/")

def hook(flow, flow_run, state):
    (HOME / f"{flow_run.parameters['name']}.hook").write_text(
        f"{os.getpid()} {os.environ['OF_THE_RUN']} {state.type.value}"
    )

@flow(on_cancellation=[hook], on_crashed=[hook])
def report(name):
    (HOME / name).write_text(f"{os.getpid()} {os.getppid()} dirty")
    while True:
        time.sleep(0.1)
"""
CLEAN = """
import os
from pathlib import Path
from prefect import flow

@flow
def report(name):
    Path(name).write_text(f"{os.environ.get('LEFT')}")
"""


@pytest.mark.parametrize("command", [None, OWN_COMMAND], ids=["forked", "with a command"])
@pytest.mark.parametrize("state", ["CANCELLED", "CRASHED"])
def test_hooks_of_a_cancelled_or_crashed_run_are_called_and_what_it_changes_stays_in_its_processes(
    pool: Pool, state: str, command: str | None
) -> None:
    """Its hooks are called by a process that imports its module. The worker does not import it."""
    (pool.home / "dirty.py").write_text(DIRTY)
    (pool.home / "clean.py").write_text(CLEAN)
    name = f"{state}{bool(command)}"
    run = pool.order(pool.deploy("dirty.py:report", command=command, env={"OF_THE_RUN": "given"}), name=name)
    pid, parent, _ = pool.note(name)
    assert parent == (pool.process.pid if command else pool.template())
    if state == "CANCELLED":
        cancel(pool, run)
    else:
        os.kill(pid, signal.SIGKILL)
    assert pool.ended(run) == state
    hook = pool.home / f"{name}.hook"
    pool.until(lambda: hook.exists() and hook.read_text())
    called_by, given, told = hook.read_text().split()
    assert (given, told) == ("given", "CANCELLING" if state == "CANCELLED" else state)
    pool.until(lambda: not Path(f"/proc/{pid}").exists())
    pool.until(lambda: "finished running successfully" in pool.said(run))
    importers = {each.name.rpartition("-")[2] for each in pool.home.glob("imported-by-*")}
    assert {str(pid), called_by} <= importers
    assert not importers & {str(pool.process.pid), str(pool.template())}
    assert Path(f"/proc/{pool.process.pid}/cwd").resolve() == pool.home
    for number, later in enumerate((None, OWN_COMMAND)):
        run = pool.order(pool.deploy("clean.py:report", command=later), name=f"{name}{number}")
        assert pool.ended(run) == "COMPLETED"
        assert (pool.home / f"{name}{number}").read_text() == "None"


def test_a_run_waits_for_room_in_its_pool_and_starts_when_there_is_some(own_pool: Pool) -> None:
    own_pool.http.patch(f"/work_pools/{own_pool.name}", json={"concurrency_limit": 1}).raise_for_status()
    for number in range(3):
        gate, later = own_pool.home / f"gate{number}", own_pool.home / f"later{number}"
        first = own_pool.order(name=f"first{number}", until_there=gate.name)
        own_pool.note(f"first{number}")
        both = [own_pool.order(name=f"{name}{number}", until_there=later.name) for name in ("second", "third")]
        gate.touch()
        # Without a limit, both are at work now, and see each other.
        own_pool.until(lambda number=number: list(own_pool.home.glob(f"[st]*d{number}")))
        later.touch()
        assert {own_pool.ended(run) for run in (first, *both)} == {"COMPLETED"}
        spans = sorted(own_pool.span(run) for run in (first, *both))
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
