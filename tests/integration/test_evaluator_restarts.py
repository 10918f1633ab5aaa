"""The evaluator killed, started again, started twice, and without Prefect: nothing lost, nothing run twice."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation

pytestmark = [pytest.mark.long, pytest.mark.prefect]


def run_here(home: Path, server: PrefectServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = server.env | {"ASSETFLOW_HOME": str(home)}
    command = [sys.executable, "-m", "assetflow", "evaluator", "start", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_second_evaluator_and_a_second_ledger_are_refused(
    here: Installation, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    first = here.start()
    second = run_here(tmp_path, prefect_server)
    assert second.returncode == 2
    assert f"process {first.pid} on" in second.stderr
    foreign = run_here(tmp_path / "other", prefect_server)
    assert foreign.returncode == 2
    assert "--take-over" in foreign.stderr
    assert run_here(tmp_path / "other", prefect_server, "--take-over", "--once").returncode == 0
    # The first one sees that it lost this Prefect, and stops.
    assert first.wait(30) == 2
    assert "belongs to the ledger" in here.log


def test_sigterm_stops_it_cleanly(here: Installation) -> None:
    process = here.start()
    process.terminate()
    assert process.wait(20) == 0
    assert not (here.home / "evaluator.json").exists()
    assert "Traceback" not in here.log
    with here.reader() as ledger:
        assert ledger.lease() is None
