"""Task runners that start processes of their own work in the forked run of a warm worker."""

import pytest

from tests.worker.pool import Pool

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(400)]

FLOW = """
import os
from pathlib import Path
from prefect import flow, task
from {module} import {runner}

@task
def square(number):
    return number * number, os.getpid()

@flow(task_runner={runner}({options}))
def report(name):
    answers = square.map(range(4)).result()
    squares, processes = zip(*answers)
    Path(name).write_text(f"{{sum(squares)}} {{os.getpid() in processes}}")
"""


def test_tasks_run_in_processes_of_prefect(pool: Pool) -> None:
    check(pool, "prefect.task_runners", "ProcessPoolTaskRunner", "max_workers=2")


def check(pool: Pool, module: str, runner: str, options: str) -> None:
    (pool.home / "squares.py").write_text(FLOW.format(module=module, runner=runner, options=options))
    run = pool.order(pool.deploy("squares.py:report"), name="squares")
    assert pool.ended(run, seconds=180) == "COMPLETED", pool.said(run)
    assert (pool.home / "squares").read_text() == "14 False"
    # The run is Completed before its process has ended those of the task runner; a worker that stops would kill it.
    pool.until(lambda: not pool.children())
