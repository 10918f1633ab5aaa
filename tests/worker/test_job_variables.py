"""The job variables of a process pool mean the same on the warm worker, and so does the text of an exit code."""

import json
import sys
from pathlib import Path

import pytest

from tests.worker.pool import Pool

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(400)]

FLOW = """
import json, os, sys
from pathlib import Path
from prefect import flow
from prefect.settings import get_current_settings

from assetflow.worker.child import read_sources

@flow
def report(name, exits=None):
    settings = get_current_settings()
    said = {
        "parent": os.getppid(),
        "folder": os.getcwd(),
        "query_seconds": settings.worker.query_seconds,
        "retries": settings.client.max_retries,
        "given": os.environ.get("GIVEN"),
        "argv": sys.argv,
        "variables": read_sources().variables,
    }
    Path(name).write_text(json.dumps(said))
    print(f"printed by {Path(name).name}", flush=True)
    if exits is not None:
        os._exit(exits)
"""


@pytest.fixture(autouse=True)
def code(pool: Pool) -> None:
    (pool.home / "code").mkdir(exist_ok=True)
    for folder in (pool.home, pool.home / "code"):
        (folder / "says.py").write_text(FLOW)


def says(pool: Pool, deployment: str, name: str) -> dict[str, object]:
    run = pool.order(deployment, name=str(pool.home / name))
    assert pool.ended(run) == "COMPLETED", pool.said(run)
    return json.loads((pool.home / name).read_text())


def test_the_working_directory_is_that_of_the_run(pool: Pool) -> None:
    folder = pool.home / "of the run"
    folder.mkdir()
    said = says(pool, pool.deploy_copied("says.py:report", working_dir=str(folder)), "in its folder")
    assert (said["folder"], said["parent"]) == (str(folder), pool.template())
    # Without one, it is temporary.
    other = str(says(pool, pool.deploy_copied("says.py:report"), "in a temporary folder")["folder"])
    assert other != str(folder)
    pool.until(lambda: not Path(other).exists())


def test_the_environment_of_the_job_counts_more_than_the_settings_of_the_worker(pool: Pool) -> None:
    given = {"PREFECT_WORKER_QUERY_SECONDS": "7", "PREFECT_CLIENT_MAX_RETRIES": "3", "GIVEN": "by the job"}
    said = says(pool, pool.deploy("says.py:report", env=given), "with its environment")
    assert said["parent"] == pool.template()
    assert (said["query_seconds"], said["retries"], said["given"]) == (7.0, 3, "by the job")


@pytest.mark.parametrize("status", [3, 137])
def test_an_exit_code_is_explained_as_in_a_process_pool(pool: Pool, status: int) -> None:
    messages: list[str] = []
    for command in (None, f"{sys.executable} -m prefect.engine"):
        deployment = pool.deploy("says.py:report", command=command)
        run = pool.order(deployment, name=str(pool.home / f"exits {status}"), exits=status)
        assert pool.ended(run) == "CRASHED"
        messages.append(pool.http.get(f"/flow_runs/{run}").json()["state"]["message"])
    assert messages[0] == messages[1]
    assert f"status code: {status}. " in messages[0]
