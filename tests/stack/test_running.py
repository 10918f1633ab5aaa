"""`assetflow dev` as a person has it: parts of it are killed in the middle of runs, and each decision has one run."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import httpx
import pytest

from assetflow.errors import LedgerError
from assetflow.ledger import Reader
from assetflow.stack.calls import PrefectCalls, runs_of
from assetflow.stack.environment import StackEnvironment, choose_port
from assetflow.stack.summary import Story, deployed_now
from tests.environment.prefect_database import spare_first_start
from tests.environment.waiting import SECONDS, until

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(600)]

SHOP = """
from assetflow import Asset, flow, task

orders, customers = Asset("s3://shop/orders", name="orders"), Asset("s3://shop/customers", name="customers")

@task(outlets=[orders])
def produce_orders(): ...

@task(outlets=[customers])
def produce_customers(): ...

@flow
def producer():
    produce_orders()
    produce_customers()

@flow(schedule=orders)
def single(): ...

@flow(schedule=orders & customers)
def both(): ...
"""

PREFECT = """
name: shop
definitions:
  pool: &pool
    name: assetflow
    job_variables: {command: python -m prefect.engine}
deployments:
  - {name: shop, entrypoint: "shop.py:producer", work_pool: *pool}
  - {name: shop, entrypoint: "shop.py:single", work_pool: *pool}
  - {name: shop, entrypoint: "shop.py:both", work_pool: *pool}
"""

SERVER, EVALUATOR = 0, 1


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StackEnvironment]:
    """`assetflow dev` of a shop without Spark."""
    monkeypatch.setenv("ASSETFLOW_SPARK_REMOTE", "")
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "prefect.yaml").write_text(PREFECT)
    environment = StackEnvironment(tmp_path, tmp_path / ".assetflow" / "dev", choose_port(None))
    spare_first_start(environment.home)
    log = tmp_path / "dev.log"
    with log.open("wb") as output:
        ports = ["--port", str(environment.port), "--pages-port", str(environment.pages_port)]
        command = [sys.executable, "-m", "assetflow", "dev", *ports]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=output, stderr=output, start_new_session=True)
    try:
        until(lambda: "Ctrl-C stops everything" in log.read_text() or process.poll() is not None, seconds=240)
        assert process.poll() is None, log.read_text()
        yield environment
    finally:
        process.terminate()
        try:
            assert process.wait(60) == 0, log.read_text()
        finally:
            process.kill()


def pids(dev: StackEnvironment) -> list[int]:
    try:
        return json.loads((dev.home / "stack.json").read_text())["pids"]
    except ValueError:
        return []


def kill(dev: StackEnvironment, part: int) -> None:
    """Kill a part of the stack with all that it started, and return when it was started again."""
    pid = pids(dev)[part]
    os.killpg(pid, signal.SIGKILL)
    until(lambda: (now := pids(dev)) and now[part] != pid)


def decisions(dev: StackEnvironment) -> int:
    try:
        with Reader.open(dev.home / "ledger.db") as reader:
            return len(reader.decisions.find())
    except LedgerError:
        return 0


def declared(dev: StackEnvironment) -> str:
    with Reader.open(dev.home / "ledger.db") as reader:
        return next(each.declaration for each in reader.consumers.all() if each.consumer.name == "single/shop")


def test_evaluator_and_server_are_killed_and_a_file_changes_in_the_middle_of_runs(dev: StackEnvironment) -> None:
    shop, before = dev.project / "shop.py", declared(dev)
    with PrefectCalls(dev.api_url, patience=SECONDS) as calls:
        for _ in range(3):
            calls.start("producer/shop")
        until(lambda: decisions(dev) >= 1)
        kill(dev, EVALUATOR)
        kill(dev, SERVER)
        calls.wait_for_run(calls.start("producer/shop"), SECONDS)
        story = until(lambda: settled(dev, calls))
        assert {decision.id for decision, _ in story.decisions} == {decision.id for decision in story.expected}
        assert len(story.expected) >= 2

        running = calls.start("producer/shop")
        shop.write_text(SHOP + "\nthis is not Python\n")
        until(lambda: "Nothing was deployed" in (dev.project / "dev.log").read_text())
        shop.write_text(SHOP.replace("schedule=orders)", "schedule=orders | customers)"))
        until(lambda: declared(dev) != before)
        calls.wait_for_run(running, SECONDS)
        story = until(lambda: settled(dev, calls))
    assert all(len(runs_of(story.runs, decision.id)) == 1 for decision, _ in story.decisions)
    assert until(lambda: httpx.get(f"{dev.pages_url}/api/v1/ready").status_code == 200)


def settled(dev: StackEnvironment, calls: PrefectCalls) -> Story | None:
    """The story, when all that was recorded is in the ledger and each decision has its run."""
    stored = calls.recordings()
    with Reader.open(dev.home / "ledger.db") as reader:
        known = reader.events.known(chain.from_iterable(stored))
        if not any(known.isdisjoint(ids) for ids in stored) and not reader.decisions.waiting():
            return Story.read(reader, calls.flow_runs(), deployed_now(reader))
    return None
