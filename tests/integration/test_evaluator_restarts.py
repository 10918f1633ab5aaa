"""The evaluator killed, started again, and started twice: nothing lost, nothing run twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from assetflow.core.values.assets import Asset
from assetflow.crash_points import EvaluatorPoint
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation, events_of, recording

pytestmark = [pytest.mark.long, pytest.mark.prefect]


@pytest.fixture
def here(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(prefect_server, tmp_path)
    yield installation
    installation.close()


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
