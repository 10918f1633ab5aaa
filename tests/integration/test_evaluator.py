"""The evaluator as a process, on a real Prefect server: an update in, a flow run out."""

import pytest

from assetflow.core.values.assets import Asset
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


def test_what_the_websocket_did_not_tell_is_found_in_the_artifacts(at_work: Installation) -> None:
    deployment = at_work.deploy("scanned", Asset(at_work.uri("a")))
    at_work.wait_for_consumers()
    at_work.task_recorded(recording(at_work.uri("a")), events=False)
    assert events_of(at_work.run_of(deployment))
