"""Two Prefect servers on Postgres and Redis, with a password: all that assetflow does there, and one server killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from assetflow.core.values.assets import Asset
from tests.environment.prefect_server import PrefectServer
from tests.environment.replicas import replicas
from tests.integration.installation import Installation, events_of, recording

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.postgres, pytest.mark.redis, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
FLOWS = "tests/integration/replica_flows.py"
POOL = "replicas"
UPDATES = 40


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[PrefectServer]]:
    with replicas(tmp_path_factory.mktemp("replicas")) as started:
        yield started


@pytest.fixture(scope="module")
def there(servers: list[PrefectServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An evaluator on the first server."""
    installation = Installation(servers[0], tmp_path_factory.mktemp("evaluator"))
    try:
        installation.start()
        yield installation
    finally:
        installation.close()


def prefect(server: PrefectServer, *arguments: str) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=server.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def worker(server: PrefectServer) -> Iterator[None]:
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"]
    env = server.env | {"PREFECT_WORKER_QUERY_SECONDS": "1"}
    with (server.home / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def deployment(server: PrefectServer, name: str) -> str:
    answer = httpx.get(f"{server.api_url}/deployments/name/{name}", headers=server.headers, timeout=30)
    return answer.raise_for_status().json()["id"]


def test_a_producer_starts_the_consumer_of_both_once(servers: list[PrefectServer], there: Installation) -> None:
    first, second = servers
    assert httpx.post(f"{first.api_url}/flow_runs/filter", json={}).status_code == 401
    prefect(first, "work-pool", "create", "--type", "process", POOL)
    for flow in ("producer", "consumer"):
        prefect(second, "deploy", f"{FLOWS}:{flow}", "-n", "replicas", "-p", POOL)
    consumer = deployment(first, "consumer/replicas")
    there.deployments[consumer] = "consumer/replicas"
    there.wait_for_consumers()
    with worker(second):
        there.post(f"/deployments/{deployment(first, 'producer/replicas')}/create_flow_run", {})
        there.until(lambda: [run for run in there.runs(consumer) if run["state_type"] == "COMPLETED"], 120)
    (run,) = there.runs(consumer)
    assert {event["uri"] for event in events_of(run)} == {"s3://replicas/orders", "s3://replicas/customers"}


def test_a_server_that_is_killed_in_mid_load(servers: list[PrefectServer], there: Installation) -> None:
    """Updates go to both servers, each announced twice; one server is killed meanwhile and comes back."""
    first, second = servers
    there.rename()
    asset = there.uri("s3://replicas/load")
    consumer = there.deploy("load", Asset(asset))
    there.wait_for_consumers()
    other = Installation(second, there.home)
    sent: set[str] = set()
    for number in range(UPDATES):
        if number == UPDATES // 4:
            first.kill()
        update = recording(asset)
        sent |= {str(event.id) for event in update.events}
        alive = there if number < UPDATES // 4 and number % 2 else other
        alive.task_recorded(update)
        alive.task_recorded(update)
    other.http.close()
    first.start()

    def consumed() -> list[str]:
        return [event["id"] for run in there.runs(consumer) for event in events_of(run)]

    there.until(lambda: len(consumed()) >= UPDATES, 120)
    there.settle()
    # Settling ends the evaluator, which the other tests need.
    there.start()
    assert sorted(consumed()) == sorted(sent)
    assert all(len(events_of(run)) == 1 for run in there.runs(consumer))


def test_who_knows_no_password_is_told(there: Installation) -> None:
    env: dict[str, Any] = there.server.env | {"ASSETFLOW_HOME": str(there.home), "PREFECT_API_AUTH_STRING": "admin:no"}
    command = [sys.executable, "-m", "assetflow", "status"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    told = " ".join((done.stdout + done.stderr).split())
    assert "does not let us in" in told
    assert "PREFECT_API_AUTH_STRING" in told
    assert "admin:no" not in told
