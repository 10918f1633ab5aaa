"""The evaluator as a process, on a real Prefect server: an update in, a flow run out."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.core.rules.state.state import decision_id
from assetflow.core.values.assets import Asset
from assetflow.core.values.timing import Deadline, Intake
from assetflow.ledger import Reader
from assetflow.prefect_io.names import DEADLINE_MISSED
from assetflow.prefect_io.recordings import recording_to_prefect_events
from tests.integration.installation import Installation, events_of, recording

pytestmark = [pytest.mark.long, pytest.mark.prefect]


@pytest.mark.rule("2.6")
def test_a_posted_event_starts_a_run_that_knows_why_and_the_decision_is_told(at_work: Installation) -> None:
    a, b = at_work.uri("a"), at_work.uri("b")
    deployment = at_work.deploy("plain", Asset(a) & Asset(b))
    at_work.wait_for_consumers()
    at_work.update(a, name="x", extra={"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"})
    at_work.update(b)
    run = at_work.run_of(deployment)
    name = f"consumer-{at_work.mark}/plain"
    assert [event["uri"] for event in events_of(run)] == [a, b]
    assert events_of(run)[0]["extra"] == {"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"}
    assert (run["parameters"], run["state_type"], run["created_by"]["type"]) == ({}, "SCHEDULED", "AUTOMATION")
    assert run["created_by"]["display_value"].startswith(name)
    assert run["labels"]["assetflow.consumer"] == name
    assert run["idempotency_key"] == run["labels"]["assetflow.decision"]

    wanted = {"event": {"name": ["assetflow.decision.made"]}, "related": {"id": [f"prefect.flow-run.{run['id']}"]}}
    (event,) = at_work.until(lambda: at_work.post("/events/filter", {"filter": wanted})["events"])
    by_role = {each["prefect.resource.role"]: each["prefect.resource.id"] for each in event["related"]}
    assert by_role["deployment"] == f"prefect.deployment.{deployment}"
    assert by_role["automation"] == f"prefect.automation.{run['created_by']['id']}"
    assert by_role["asset"] in (a, b)

    (note,) = at_work.until(lambda: at_work.notes(run["id"]))
    assert (note["type"], note["description"]) == ("markdown", "Why this ran")
    told = note["data"].replace("\\", "")
    assert told.startswith(f"{name} runs because its condition held at ")
    rows = [line.split(" | ")[:2] for line in told.splitlines() if line.startswith("| ")]
    assert rows[2:] == [["| ", a], ["| last one needed", b]]


def test_many_updates_at_once_become_as_many_runs_in_their_order(at_work: Installation) -> None:
    deployment = at_work.deploy("many", Asset(at_work.uri("a")))
    at_work.wait_for_consumers()
    made = [recording(at_work.uri("a")) for _ in range(20)]
    at_work.post("/events", [event for each in made for event in recording_to_prefect_events(each)])
    at_work.until(lambda: len(at_work.runs(deployment)) == len(made))
    runs = sorted(at_work.runs(deployment), key=lambda run: run["created"])
    with at_work.reader() as ledger:
        name = at_work.deployments[deployment]
        launched = at_work.until(lambda: _launched(ledger, name, len(made)))
    assert [(run["idempotency_key"], run["id"]) for run in runs] == launched
    consumed = [event["id"] for run in runs for event in events_of(run)]
    assert sorted(consumed) == sorted(str(event.id) for each in made for event in each.events)
    assert {run["created_by"]["type"] for run in runs} == {"AUTOMATION"}
    # Notes are written in the same order; until the last one is there, Prefect is busy with them.
    at_work.until(lambda: at_work.notes(runs[-1]["id"]))


def test_what_the_websocket_did_not_tell_is_found_in_the_artifacts(at_work: Installation) -> None:
    deployment = at_work.deploy("scanned", Asset(at_work.uri("a")))
    at_work.wait_for_consumers()
    at_work.task_recorded(recording(at_work.uri("a")), events=False)
    assert events_of(at_work.run_of(deployment))


def test_a_run_of_another_deployment_under_the_same_key_is_not_taken_for_ours(at_work: Installation) -> None:
    ours, other = at_work.deploy("ours", Asset(at_work.uri("a"))), at_work.deploy("other", Asset(at_work.uri("b")))
    at_work.wait_for_consumers()
    event = uuid4()
    key = str(decision_id(UUID(ours), None, [event]))
    there_first = at_work.post(f"/deployments/{other}/create_flow_run", {"idempotency_key": key})
    at_work.update(at_work.uri("a"), id=event)
    with at_work.reader() as ledger:
        (decision,) = at_work.until(lambda: ledger.decisions.find(status="undeliverable"))
    assert str(decision.id) == key
    assert f"run {there_first['id']} of another deployment" in decision.error
    assert at_work.runs(ours) == []


def missed(at_work: Installation) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    since, until = ((now + timedelta(hours=hours)).isoformat() for hours in (-1, 1))
    wanted = {"event": {"name": [DEADLINE_MISSED]}, "occurred": {"since": since, "until": until}}
    found = at_work.post("/events/filter", {"filter": wanted, "limit": 50})["events"]
    return [event for event in found if at_work.mark in event["resource"]["prefect.resource.name"]]


@pytest.mark.rule("9.8", "9.9")
def test_debounce_and_deadline(at_work: Installation) -> None:
    a, b = Asset(at_work.uri("a")), Asset(at_work.uri("b"))
    quiet = at_work.deploy("quiet", a, intake=Intake(debounce=timedelta(seconds=1)))
    late = at_work.deploy("late", a & b, deadline=Deadline(timedelta(seconds=1), then="run"))
    at_work.wait_for_consumers()
    at_work.update(a.uri)

    at_work.until(lambda: len(at_work.runs(quiet)) == 1 and len(at_work.runs(late)) == 1)

    assert at_work.runs(late)[0]["labels"]["assetflow.deadline"] == "true"
    at_work.until(lambda: len(missed(at_work)) == 1)
    (event,) = missed(at_work)
    assert event["payload"]["then"] == "run"
    assert event["payload"]["queued"] == 1


def _launched(ledger: Reader, consumer: str, number: int) -> list[tuple[str, str]]:
    """The decisions of a consumer and their runs, oldest first, when there are so many."""
    decisions = [
        each for each in ledger.decisions.find(limit=1000) if each.consumer_name == consumer and each.flow_run_id
    ]
    return [(str(each.id), str(each.flow_run_id)) for each in decisions[::-1]] if len(decisions) == number else []
