"""What Prefect controls of a flow run holds on the warm worker: hooks, time limits, and how many run at once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.worker.pool import Pool

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(400)]

HOOKED = """
import os, time
from pathlib import Path
from prefect import flow

HOME = Path(__file__).parent

def hook(flow, flow_run, state):
    (HOME / f"{flow_run.parameters['name']}.hook").write_text(state.type.value)

@flow(on_cancellation=[hook], on_crashed=[hook])
def report(name):
    (HOME / name).write_text(f"{os.getpid()} {os.getppid()} hooked")
    while True:
        time.sleep(0.1)
"""
LATE = """
import time
from prefect import flow

@flow(timeout_seconds=1)
def report(name):
    while True:
        time.sleep(0.1)
"""


def cancel(pool: Pool, run: str) -> None:
    pool.post(f"/flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})


@pytest.mark.parametrize("state", ["CANCELLED", "CRASHED"])
def test_hooks_are_called_when_a_run_was_cancelled_or_crashed(pool: Pool, state: str) -> None:
    (pool.home / "hooked.py").write_text(HOOKED)
    run = pool.order(pool.deploy("hooked.py:report"), name=state)
    pid, parent, _ = pool.note(state)
    assert parent == pool.template()
    if state == "CANCELLED":
        cancel(pool, run)
    else:
        os.kill(pid, signal.SIGKILL)
    assert pool.ended(run) == state
    hook = pool.home / f"{state}.hook"
    pool.until(lambda: hook.exists() and hook.read_text())
    assert hook.read_text() == {"CANCELLED": "CANCELLING", "CRASHED": "CRASHED"}[state]
    pool.until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_flow_ends_at_its_time_limit(pool: Pool) -> None:
    (pool.home / "late.py").write_text(LATE)
    run = pool.order(pool.deploy("late.py:report"))
    assert pool.ended(run) == "FAILED"
    assert pool.http.get(f"/flow_runs/{run}").json()["state"]["name"] == "TimedOut"


def test_a_run_waits_for_room_in_its_pool_and_starts_when_there_is_some(own_pool: Pool) -> None:
    own_pool.http.patch(f"/work_pools/{own_pool.name}", json={"concurrency_limit": 1}).raise_for_status()
    for number in range(3):
        gate = f"gate{number}"
        first = own_pool.order(name=f"first{number}", until_there=gate)
        own_pool.note(f"first{number}")
        second = own_pool.order(name=f"second{number}")
        third = own_pool.order(name=f"third{number}")
        assert {own_pool.state(run) for run in (second, third)} == {"SCHEDULED"}
        assert not (own_pool.home / f"second{number}").exists()
        (own_pool.home / gate).touch()
        assert {own_pool.ended(run) for run in (first, second, third)} == {"COMPLETED"}


def test_a_run_beyond_the_limit_of_its_deployment_is_cancelled(pool: Pool) -> None:
    limits = {"concurrency_limit": 1, "concurrency_options": {"collision_strategy": "CANCEL_NEW"}}
    limited = pool.deploy("flows.py:report")
    pool.http.patch(f"/deployments/{limited}", json=limits).raise_for_status()
    first = pool.order(limited, name="only", until_there="gate")
    pool.note("only")
    assert pool.ended(pool.order(limited, name="too many")) == "CANCELLED"
    assert not (pool.home / "too many").exists()
    (pool.home / "gate").touch()
    assert pool.ended(first) == "COMPLETED"
