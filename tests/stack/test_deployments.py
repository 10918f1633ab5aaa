"""`prefect deploy --all` and `python -m deployments.serve` on a real server: both make working consumers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from assetflow.stack.calls import PrefectCalls
from assetflow.stack.flow_files import DEFAULT_POOL
from tests.environment.examples import ROOT
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(300)]

CONSUMERS = {
    "orders-consumer/shop": "orders",
    "combined-consumer/shop": "orders AND customers",
    "carrier-report/lake": "flights",
    "delay-by-weather/lake": "flights AND weather",
    "fleet-report/lake": "flights AND planes",
    "board/lake": "carrier_report OR (delay_by_weather AND fleet_report)",
    "daily-delays/lake": "flights_daily AND weather_hourly",
    "monthly-report/lake": "daily_delays",
}
DEPLOYMENTS = {
    f"{entry['entrypoint'].rpartition(':')[2].replace('_', '-')}/{entry['name']}"
    for entry in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
}


class Site:
    """A server without deployments, and a ledger without consumers."""

    def __init__(self, server: PrefectServer, home: Path) -> None:
        self.http = server.http()
        self.env = server.env | {"ASSETFLOW_HOME": str(home)}
        for deployment in self.deployments():
            self.http.delete(f"/deployments/{deployment['id']}")

    def deployments(self) -> list[dict[str, Any]]:
        return self.http.post("/deployments/filter", json={}).raise_for_status().json()

    def names(self) -> set[str]:
        """All deployments, as flow/deployment."""
        with PrefectCalls(str(self.http.base_url)) as calls:
            return set(calls.deployments().values())

    def call(self, *arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, env=self.env, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def evaluate(self) -> None:
        """Let an evaluator do what there is to do."""
        self.call("assetflow", "evaluator", "start", "--once", "--take-over")

    def consumers(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in json.loads(self.call("assetflow", "consumers", "ls", "--json"))}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    with PrefectServer(tmp_path_factory.mktemp("deployments")) as server:
        yield server


@pytest.fixture
def site(server: PrefectServer, tmp_path: Path) -> Iterator[Site]:
    made = Site(server, tmp_path)
    yield made
    made.http.close()


def check_consumers(site: Site) -> None:
    site.evaluate()
    found = site.consumers()
    assert CONSUMERS.items() <= {name: consumer["schedule"] for name, consumer in found.items()}.items()
    assert all(consumer["automation_id"] for consumer in found.values())
    assert not any(consumer["paused"] or consumer["held"] for consumer in found.values())


def test_prefect_deploy_all(site: Site) -> None:
    with PrefectCalls(str(site.http.base_url)) as calls:
        calls.make_pool(DEFAULT_POOL)
    site.call("prefect", "--no-prompt", "deploy", "--all")
    assert site.names() == DEPLOYMENTS
    check_consumers(site)
    orders = (Path(site.env["ASSETFLOW_HOME"]) / "lake" / "orders").as_uri()
    site.call("assetflow", "emit", orders)
    site.evaluate()
    consumer = site.consumers()["orders-consumer/shop"]
    runs = {"flow_runs": {"deployment_id": {"any_": [consumer["deployment_id"]]}}}
    (run,) = site.http.post("/flow_runs/filter", json=runs).json()
    assert run["id"] == consumer["last_decision"]["flow_run_id"]


def test_serve(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "deployments.serve"]
        serving = subprocess.Popen(command, env=site.env, cwd=ROOT, stdout=output, stderr=output)
    try:
        until(lambda: len(site.names()) >= len(DEPLOYMENTS) or serving.poll() is not None)
        assert serving.poll() is None, log.read_text()
        assert site.names() == DEPLOYMENTS
        check_consumers(site)
    finally:
        serving.terminate()
        serving.wait(30)
    # Stopped, its deployments are paused: decisions are held back, and nothing is lost (3.4).
    site.evaluate()
    stopped = site.consumers()
    assert stopped.keys() >= CONSUMERS.keys()
    assert all(consumer["held"] and not consumer["paused"] for consumer in stopped.values())
