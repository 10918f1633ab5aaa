"""The evaluator as a process, on a real Prefect server: an update in, a flow run out."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from assetflow.core.rules.state.state import decision_id
from assetflow.core.values.assets import Asset
from assetflow.ledger import Reader
from assetflow.prefect_io.recordings import recording_to_prefect_events
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation, events_of, recording

pytestmark = [pytest.mark.long, pytest.mark.prefect]


@pytest.fixture(scope="module")
def at_work(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An evaluator that all tests of this module share."""
    installation = Installation(prefect_server, tmp_path_factory.mktemp("evaluator"))
    installation.start()
    yield installation
    installation.close()


@pytest.fixture
def here(at_work: Installation) -> Iterator[Installation]:
    """The evaluator at work, with names and deployments of this test's own."""
    at_work.rename()
    yield at_work
    at_work.remove_deployments()


@pytest.mark.rule("2.6")
def test_a_posted_event_starts_a_run_that_knows_why(here: Installation) -> None:
    deployment = here.deploy("plain", Asset(here.uri("a")))
    here.wait_for_consumers()
    here.update(here.uri("a"), extra={"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"})
    run = here.run_of(deployment)
    (event,) = events_of(run)
    assert event["extra"] == {"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"}
    assert run["parameters"] == {}
    assert run["created_by"]["type"] == "AUTOMATION"
    assert run["created_by"]["display_value"].startswith(f"consumer-{here.mark}/plain")
    assert run["labels"]["assetflow.consumer"] == f"consumer-{here.mark}/plain"
    assert run["idempotency_key"] == run["labels"]["assetflow.decision"]
    assert run["state_type"] == "SCHEDULED"


def test_the_decision_is_told_to_prefect(here: Installation) -> None:
    deployment = here.deploy("told", Asset(here.uri("a")))
    here.wait_for_consumers()
    here.update(here.uri("a"))
    run = here.run_of(deployment)
    wanted = {"event": {"name": ["assetflow.decision.made"]}, "related": {"id": [f"prefect.flow-run.{run['id']}"]}}
    (event,) = here.until(lambda: here.post("/events/filter", {"filter": wanted})["events"])
    by_role = {each["prefect.resource.role"]: each["prefect.resource.id"] for each in event["related"]}
    assert by_role["deployment"] == f"prefect.deployment.{deployment}"
    assert by_role["automation"] == f"prefect.automation.{run['created_by']['id']}"
    assert by_role["asset"] == here.uri("a")


def test_the_page_of_the_run_says_why(here: Installation) -> None:
    a, b = here.uri("a"), here.uri("b")
    deployment = here.deploy("noted", Asset(a) & Asset(b))
    here.wait_for_consumers()
    here.update(a, name="x")
    here.update(b)
    run = here.run_of(deployment)
    (note,) = here.until(lambda: here.notes(run["id"]))
    assert (note["type"], note["description"]) == ("markdown", "Why this ran")
    told = note["data"].replace("\\", "")
    assert told.startswith(f"consumer-{here.mark}/noted runs because its condition held at ")
    assert [line.split(" | ")[:2] for line in told.splitlines() if line.startswith("| ")][2:] == [
        ["| ", a],
        ["| last one needed", b],
    ]


@pytest.mark.rule("4.3")
def test_or_in_one_recording_is_one_run(here: Installation) -> None:
    a, b = here.uri("a"), here.uri("b")
    deployment = here.deploy("either", Asset(a) | Asset(b))
    here.wait_for_consumers()
    here.task_recorded(recording(a, b))
    assert [event["uri"] for event in events_of(here.run_of(deployment))] == [a, b]


def test_many_updates_at_once_become_as_many_runs_in_their_order(here: Installation) -> None:
    deployment = here.deploy("many", Asset(here.uri("a")))
    here.wait_for_consumers()
    made = [recording(here.uri("a")) for _ in range(20)]
    here.post("/events", [event for each in made for event in recording_to_prefect_events(each)])
    here.until(lambda: len(here.runs(deployment)) == len(made))
    runs = sorted(here.runs(deployment), key=lambda run: run["created"])
    with here.reader() as ledger:
        name = here.deployments[deployment]
        launched = here.until(lambda: _launched(ledger, name, len(made)))
    assert [(run["idempotency_key"], run["id"]) for run in runs] == launched
    consumed = [event["id"] for run in runs for event in events_of(run)]
    assert sorted(consumed) == sorted(str(event.id) for each in made for event in each.events)
    assert {run["created_by"]["type"] for run in runs} == {"AUTOMATION"}
    # Notes are written in the same order; until the last one is there, Prefect is busy with them.
    here.until(lambda: here.notes(runs[-1]["id"]))


def test_what_the_websocket_did_not_tell_is_found_in_the_artifacts(here: Installation) -> None:
    deployment = here.deploy("scanned", Asset(here.uri("a")))
    here.wait_for_consumers()
    here.task_recorded(recording(here.uri("a")), events=False)
    assert events_of(here.run_of(deployment))


@pytest.mark.rule("2.6")
def test_bad_events_are_kept_with_the_reason(here: Installation) -> None:
    here.update(f"airflow://{here.mark}")
    with here.reader() as ledger:
        refused = here.until(lambda: [each for each in ledger.events.refused() if here.mark in each.reason])
    assert "reserved" in refused[0].reason


def test_a_run_of_another_deployment_under_the_same_key_is_not_taken_for_ours(here: Installation) -> None:
    ours, other = here.deploy("ours", Asset(here.uri("a"))), here.deploy("other", Asset(here.uri("b")))
    here.wait_for_consumers()
    event = uuid4()
    key = str(decision_id(UUID(ours), None, [event]))
    there_first = here.post(f"/deployments/{other}/create_flow_run", {"idempotency_key": key})
    here.update(here.uri("a"), id=event)
    with here.reader() as ledger:
        (decision,) = here.until(lambda: ledger.decisions.find(status="undeliverable"))
    assert str(decision.id) == key
    assert f"run {there_first['id']} of another deployment" in decision.error
    assert here.runs(ours) == []


def _launched(ledger: Reader, consumer: str, number: int) -> list[tuple[str, str]]:
    """The decisions of a consumer and their runs, oldest first, when there are so many."""
    decisions = [
        each for each in ledger.decisions.find(limit=1000) if each.consumer_name == consumer and each.flow_run_id
    ]
    return [(str(each.id), str(each.flow_run_id)) for each in decisions[::-1]] if len(decisions) == number else []
