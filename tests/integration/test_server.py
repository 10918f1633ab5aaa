"""`assetflow server start` on a real Prefect server; and example 22: an update that comes from another environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import assetflow
from assetflow.core.assets import Asset
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation, events_of

pytestmark = [pytest.mark.long, pytest.mark.prefect]

KEY = "a-long-random-text"


class ServedInstallation(Installation):
    """An installation whose evaluator and API are one process."""

    url = ""

    def start(self, *arguments: str, crash_at: str = "", ready: bool = True) -> subprocess.Popen[bytes]:
        assert not crash_at
        env = self.server.env | {"ASSETFLOW_HOME": str(self.home), "ASSETFLOW_API_KEY": KEY}
        command = [sys.executable, "-m", "assetflow", "server", "start", "--take-over", "--port", "0", *arguments]
        with (self.home / "evaluator.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if ready:
            self.until(self._is_ready)
        self.url = re.findall(r"listening on (\S+)", self.log)[-1]
        return self._process


@pytest.fixture
def there(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[ServedInstallation]:
    """The other environment: a Prefect server, a ledger and an API of its own; here, no Prefect is configured."""
    assert "PREFECT_API_URL" not in os.environ
    installation = ServedInstallation(prefect_server, tmp_path)
    try:
        yield installation
    finally:
        installation.close()


@pytest.fixture
def api(there: ServedInstallation) -> Iterator[httpx.Client]:
    there.start()
    with httpx.Client(base_url=there.url, headers={"x-api-key": KEY}, timeout=30) as client:
        yield client


def test_22_an_update_from_elsewhere_starts_its_consumer_once(there: ServedInstallation, api: httpx.Client) -> None:
    uri = there.uri("s3://shop/orders")
    consumer = there.deploy("orders", Asset(uri))
    there.wait_for_consumers()

    event = assetflow.emit(uri, {"rows": 3}, to=there.url, key=KEY)
    assetflow.emit(uri, {"rows": 3}, id=event.id, to=there.url, key=KEY)

    run = there.run_of(consumer)
    assert [(each["id"], each["extra"]) for each in events_of(run)] == [(str(event.id), {"rows": 3})]
    told = there.until(lambda: _launched(api, run["id"]))
    assert told is not None
    assert (told["run"]["flow_run"], told["completed_by"]) == (run["id"], str(event.id))
    assert len(there.runs(consumer)) == 1


def test_pause_resume_and_ready(there: ServedInstallation, api: httpx.Client) -> None:
    uri = there.uri("s3://shop/orders")
    consumer = there.deploy("orders", Asset(uri))
    there.wait_for_consumers()
    path = f"/api/v1/consumers/{there.deployments[consumer]}"
    json = {"content-type": "application/json"}

    assert api.get("/api/v1/ready").json()["status"] == "ready"
    assert api.post(f"{path}/pause", headers=json).json() == {"consumer": there.deployments[consumer], "paused": True}
    there.until(lambda: api.get(path).json()["state"] == "paused")
    assetflow.emit(uri, to=there.url, key=KEY)
    assert api.post(f"{path}/resume", headers=json).status_code == 200
    there.until(lambda: api.get(path).json()["state"] == "waiting")
    assert there.runs(consumer) == []


def test_materialize_runs_the_flow_that_makes_it(there: ServedInstallation, api: httpx.Client) -> None:
    uri = there.uri("s3://shop/made")
    producer = there.deploy("maker", Asset(there.uri("x")), produces=(Asset(uri),))
    there.wait_for_consumers()
    assetflow.emit(uri, to=there.url, key=KEY)
    number = api.get("/api/v1/asset", params={"asset": uri}).json()["id"]

    made: dict[str, Any] = api.post(
        f"/api/v2/assets/{number}/materialize", json={"partition_key": "2026-01-01", "dag_run_id": "by-hand"}
    ).json()
    (run,) = there.runs(producer)
    assert (run["id"], run["name"]) == (made["dag_run_id"], "by-hand")
    assert run["context"]["assetflow"]["partition_key"] == "2026-01-01"
    assert (made["run_type"], made["state"], made["partition_key"]) == ("asset_materialization", "queued", "2026-01-01")


def _launched(api: httpx.Client, run: str) -> dict[str, Any] | None:
    answer = api.get(f"/api/v1/runs/{run}")
    return answer.json() if answer.status_code == 200 else None
