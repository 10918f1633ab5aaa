"""The evaluator as a process, on a real Prefect server: an update in, a flow run out."""

import subprocess
import sys
from pathlib import Path

import pytest

from assetflow.core.values.assets import Asset
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation, events_of, recording

pytestmark = [pytest.mark.long, pytest.mark.prefect]


@pytest.mark.rule("2.6")
def test_a_posted_event_starts_a_run_that_knows_why_and_the_decision_is_told(here: Installation) -> None:
    a, b = here.uri("a"), here.uri("b")
    deployment = here.deploy("plain", Asset(a) & Asset(b))
    here.begin()
    here.update(a, name="x", extra={"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"})
    here.update(b)
    run = here.run_of(deployment)
    name = f"consumer-{here.mark}/plain"
    assert [event["uri"] for event in events_of(run)] == [a, b]
    assert events_of(run)[0]["extra"] == {"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"}
    assert (run["parameters"], run["state_type"], run["created_by"]["type"]) == ({}, "SCHEDULED", "AUTOMATION")
    assert run["created_by"]["display_value"].startswith(name)
    assert run["labels"]["assetflow.consumer"] == name
    assert run["idempotency_key"] == run["labels"]["assetflow.decision"]
    wanted = {"event": {"name": ["assetflow.decision.made"]}, "related": {"id": [f"prefect.flow-run.{run['id']}"]}}
    (event,) = here.until(lambda: here.post("/events/filter", {"filter": wanted})["events"])
    by_role = {each["prefect.resource.role"]: each["prefect.resource.id"] for each in event["related"]}
    assert by_role["deployment"] == f"prefect.deployment.{deployment}"
    assert by_role["automation"] == f"prefect.automation.{run['created_by']['id']}"
    assert by_role["asset"] in (a, b)
    (note,) = here.until(lambda: here.notes(run["id"]))
    assert (note["type"], note["description"]) == ("markdown", "Why this ran")
    told = note["data"].replace("\\", "")
    assert told.startswith(f"{name} runs because its condition held at ")
    rows = [line.split(" | ")[:2] for line in told.splitlines() if line.startswith("| ")]
    assert rows[2:] == [["| ", a], ["| last one needed", b]]


def test_what_the_websocket_did_not_tell_is_found_in_the_artifacts(here: Installation) -> None:
    deployment = here.deploy("scanned", Asset(here.uri("a")))
    here.begin()
    here.task_recorded(recording(here.uri("a")), events=False)
    assert events_of(here.run_of(deployment))


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
