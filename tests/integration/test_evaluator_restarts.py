"""The evaluator killed, started again, started twice, and without Prefect: nothing lost, nothing run twice."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assetflow.api.requests import Backend
from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from assetflow.web.troubles import troubles_of
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation

pytestmark = [pytest.mark.long, pytest.mark.prefect]

NAMED_WITHIN = 30.0
AWAY = "Prefect cannot be reached"


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


@pytest.mark.timeout(600)
def test_a_server_that_does_not_answer_is_named_by_status_the_pages_and_the_log(tmp_path: Path) -> None:
    with PrefectServer(tmp_path / "server") as server:
        here = Installation(server, tmp_path)
        here.deploy("report", Asset(here.uri("a")))
        here.start()
        server.pause()
        paused = time.monotonic()
        try:
            with Ledger.open(tmp_path / "ledger.db") as ledger:
                site = Backend(ledger)
                here.until(lambda: AWAY in [each.title for each in troubles_of(site)], NAMED_WITHIN)
            here.until(lambda: "does not answer" in here.log, NAMED_WITHIN - (time.monotonic() - paused))
            left = NAMED_WITHIN - (time.monotonic() - paused)
            here.until(lambda: not _status(here)["prefect"]["reachable"], max(left, 1))
            assert "works again" not in here.log
            server.resume()
            here.until(lambda: _status(here)["ok"])
        finally:
            server.resume()
            here.close()


def _status(here: Installation) -> dict[str, dict[str, object]]:
    command = [sys.executable, "-m", "assetflow", "status", "--json"]
    env = here.server.env | {"ASSETFLOW_HOME": str(here.home)}
    return json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout)
