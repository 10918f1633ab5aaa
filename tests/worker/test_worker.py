"""The work pool type `assetflow` on a real Prefect server: its runs are forked, else it is a process pool."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.environment.prefect_server import PrefectServer
from tests.worker.pool import FLOW, Pool

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(400)]


def test_prefect_creates_a_pool_of_the_type(prefect_server: PrefectServer) -> None:
    name = f"created-{uuid4().hex[:8]}"
    create = [sys.executable, "-m", "prefect", "work-pool", "create", "--type", "assetflow", name]
    subprocess.run(create, env=prefect_server.env, check=True, capture_output=True)
    with prefect_server.http() as http:
        pool = http.get(f"/work_pools/{name}").raise_for_status().json()
        http.delete(f"/work_pools/{name}")
    assert pool["type"] == "assetflow"
    assert "preload" in pool["base_job_template"]["variables"]["properties"]


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
    code = "import sys; from assetflow.worker import child, template; child.preload(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = set((pool.home / "imported").read_text().split()) - set(done.stdout.split())
    assert "modules" in late
    ours = ("assetflow.", "prefect.", "sqlalchemy.", "pydantic.")
    assert not [each for each in late if each.startswith(ours)]
    assert len(late) < 10, late


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


SQUARES = """
import os
from pathlib import Path
from prefect import flow, task
from prefect.task_runners import ProcessPoolTaskRunner

@task
def square(number):
    return number * number, os.getpid()

@flow(task_runner=ProcessPoolTaskRunner(max_workers=2))
def report(name):
    answers = square.map(range(4)).result()
    squares, processes = zip(*answers)
    Path(name).write_text(f"{sum(squares)} {os.getpid() in processes}")
"""


def test_tasks_run_in_processes_of_prefect(pool: Pool) -> None:
    (pool.home / "squares.py").write_text(SQUARES)
    run = pool.order(pool.deploy("squares.py:report"), name="squares")
    assert pool.ended(run, seconds=180) == "COMPLETED", pool.said(run)
    assert (pool.home / "squares").read_text() == "14 False"
    # The run is Completed before its process has ended those of the task runner; a worker that stops would kill it.
    pool.until(lambda: not pool.children())
