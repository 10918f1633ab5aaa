"""Runs that somebody retries in Prefect: the evaluator hears of it, or finds it later (contract 4.7, 8.6)."""

import pytest

from assetflow import Asset
from assetflow.ledger import Reader
from tests.integration.installation import Installation, recording
from tests.ledger.write.test_kept import kept

pytestmark = [pytest.mark.long, pytest.mark.prefect]


def set_states(here: Installation, run: str, *states: str) -> None:
    for state in states:
        here.post(f"/flow_runs/{run}/set_state", {"state": {"type": state}, "force": True})


def state(ledger: Reader) -> str:
    (decision, *_) = ledger.decisions.find()[::-1]
    return decision.run_state or decision.status


@pytest.mark.parametrize(
    ("heard", "states"),
    [(True, ["SCHEDULED", "PENDING", "RUNNING"]), (False, ["SCHEDULED", "PENDING", "RUNNING"]), (False, ["SCHEDULED"])],
    ids=["heard", "found going on", "found waiting for a worker"],
)
def test_4_7_a_run_that_is_retried_goes_on_again(here: Installation, heard: bool, states: list[str]) -> None:
    raw = here.uri("raw")
    deployment = here.deploy_declared("kept", kept([Asset(raw)], [Asset(here.uri("made"))]))
    here.begin()
    here.task_recorded(recording(raw))
    run = here.run_of(deployment)["id"]
    with here.reader() as ledger:
        set_states(here, run, "PENDING", "RUNNING", "FAILED")
        here.until(lambda: state(ledger) == "Failed")
        if not heard:
            here.kill()
        set_states(here, run, *states)
        if not heard:
            here.start()
        here.until(lambda: state(ledger) == "launched")
        before = ledger.status().last_event
        here.task_recorded(recording(raw))
        here.until(lambda: ledger.status().last_event > before)
        assert [each["id"] for each in here.runs(deployment)] == [run]
        set_states(here, run, "COMPLETED")
        here.until(lambda: len(here.runs(deployment)) == 2)
        assert state(ledger) == "Completed"


raw = Asset("s3://retried/raw")
