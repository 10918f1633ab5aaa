"""A Prefect server that takes connections and does not answer is named within half a minute."""

from __future__ import annotations

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

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(600)]

SECONDS = 30.0
AWAY = "Prefect cannot be reached"


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
                here.until(lambda: AWAY in [each.title for each in troubles_of(site)], SECONDS)
            here.until(lambda: "does not answer" in here.log, SECONDS - (time.monotonic() - paused))
            left = SECONDS - (time.monotonic() - paused)
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
