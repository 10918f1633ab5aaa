"""The pytest plugin: a project needs no conftest.py, and its tests share one Prefect server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import os
import pytest
from assetflow import Asset, flow

orders = Asset("s3://shop/orders")
servers = set()

@flow(schedule=orders)
def report(): ...

@pytest.mark.parametrize("number", [1, 2])
def test_the_report_follows(h, number):
    from prefect.settings import get_current_settings
    h.deploy(report)
    h.emit(orders)
    (run,) = h.settle().runs(report)
    assert run.state == "Completed"
    servers.add(get_current_settings().api.url)
    assert len(servers) == 1
"""


def test_a_project_that_does_not_use_the_fixture_imports_nothing_of_ours() -> None:
    seen = (
        "import sys, assetflow.testing.plugin; print({'prefect', 'sqlalchemy', 'assetflow.ledger'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.long
@pytest.mark.prefect
def test_a_project_without_a_conftest(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(TESTS)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSETFLOW_"))}
    env = clean | {"PREFECT_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:asyncio", str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
