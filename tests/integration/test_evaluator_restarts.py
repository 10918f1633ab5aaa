"""The evaluator killed, started again, started twice, and without Prefect: nothing lost, nothing run twice."""

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args
from uuid import UUID, uuid4

import pytest

from assetflow.api.requests import Backend
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, CheckResult, Origin, Recording
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire import FlowDeclaration, RunContext
from assetflow.crash_points import EvaluatorPoint
from assetflow.ledger import Ledger
from assetflow.prefect_io.flow_runs import run_request
from assetflow.prefect_io.open_runs import past_decisions
from assetflow.prefect_io.rest import prefect_api
from assetflow.web.troubles import troubles_of
from tests.core.world import event
from tests.environment.prefect_server import PrefectServer
from tests.environment.prefect_settings import prefect_at
from tests.integration.installation import Installation, events_of, recording

pytestmark = [pytest.mark.long, pytest.mark.prefect]

NAMED_WITHIN = 30.0
AWAY = "Prefect cannot be reached"


def test_what_came_while_no_evaluator_ran_is_made_up_for_in_order(here: Installation) -> None:
    a, b = here.uri("a"), here.uri("b")
    deployment = here.deploy("later", Asset(a) & Asset(b))
    here.start()
    here.kill()
    here.task_recorded(recording(a), events=False)
    here.task_recorded(recording(a), events=False)
    here.task_recorded(recording(b))
    here.settle()
    assert [event["uri"] for event in events_of(here.run_of(deployment))] == [a, a, b]


@pytest.mark.rule("4.6")
@pytest.mark.parametrize("point", get_args(EvaluatorPoint))
def test_killed_at_any_point_and_started_again_there_is_one_run(here: Installation, point: str) -> None:
    deployment = here.deploy("survives", Asset(here.uri("a")))
    here.start(crash_at=point)
    here.task_recorded(recording(here.uri("a")))
    here.crashed()
    here.settle()
    assert len(here.runs(deployment)) == 1
    with here.reader() as ledger:
        (decision,) = ledger.decisions.find()
        assert decision.status == "launched"
        assert str(decision.flow_run_id) == here.runs(deployment)[0]["id"]
    assert len(here.notes(str(decision.flow_run_id))) == 1


def test_a_replay_brings_nothing_twice_and_what_was_before_the_ledger(here: Installation) -> None:
    deployment = here.deploy("replayed", Asset(here.uri("a")))
    before = datetime.now(UTC)
    here.task_recorded(recording(here.uri("a")))
    here.settle()
    assert here.runs(deployment) == []
    for _ in range(2):
        here.start("--since", before.isoformat(), "--once", ready=False).wait(45)
    assert len(here.runs(deployment)) == 1


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


async def found(since: datetime) -> list[set[UUID]]:
    async with prefect_api() as api:
        return [{each.id async for each in reading} for reading in past_decisions(api, since)]


def test_the_run_of_an_opening_hours_ago_is_found(here: Installation, prefect_server: PrefectServer) -> None:
    asset = Asset(here.uri("raw"))
    deployment = UUID(here.deploy_declared("report", FlowDeclaration(ConsumerOptions(Schedule(asset)))))
    now = datetime.now(UTC)
    opening = now - timedelta(hours=9)
    runs: dict[UUID, str] = {}
    for _ in range(2):
        decision = Decision(uuid4(), 1, deployment, None, (event(asset),), now, opening=opening)
        context = RunContext(decision.id, "report/x", None, decision.events, made=now, opening=opening)
        request = run_request(decision, context)
        runs[decision.id] = here.post(f"/deployments/{deployment}/create_flow_run", request)["id"]
    waits, began = runs
    for state in ("PENDING", "RUNNING", "COMPLETED"):
        here.post(f"/flow_runs/{runs[began]}/set_state", {"state": {"type": state}, "force": True})

    with prefect_at(prefect_server.api_url):
        of_each = asyncio.run(found(now - timedelta(hours=1)))

    assert [each & {waits, began} for each in of_each] == [{waits}, {began}, set()]


def told(here: Installation, uri: str) -> list[dict[str, Any]]:
    wanted = {"event": {"name": ["assetflow.check.failed"]}, "resource": {"id": [uri]}}
    return here.post("/events/filter", {"filter": wanted})["events"]


def test_rule_12_6_each_failed_check_is_one_event_though_the_evaluator_is_killed(here: Installation) -> None:
    asset = Asset(f"s3://checks/{here.mark}")
    failed = CheckResult("sane", "error", False, "sane", found=2)
    made = AssetEvent(uuid4(), asset, datetime.now(UTC), Origin("task"), checks=(failed,))
    here.start()
    here.task_recorded(Recording(uuid4(), (made,)))
    here.task_recorded(Recording(uuid4(), held_back=(replace(made, id=uuid4()),)))
    here.until(lambda: len(told(here, asset.uri)) == 2 or None)
    events = told(here, asset.uri)
    here.kill()
    here.settle()
    assert {each["id"] for each in told(here, asset.uri)} == {each["id"] for each in events}
    assert sorted(each["payload"]["held_back"] for each in events) == [False, True]


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
