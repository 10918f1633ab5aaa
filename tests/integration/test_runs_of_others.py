"""Runs that somebody starts or retries in Prefect: the evaluator hears of them, or finds them (contract 4.7, 8.6)."""

from uuid import UUID

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


@pytest.mark.parametrize("heard", [True, False], ids=["heard", "found"])
def test_4_7_a_run_that_is_retried_goes_on_again(here: Installation, heard: bool) -> None:
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
        set_states(here, run, "SCHEDULED", "PENDING", "RUNNING")
        if not heard:
            here.start()
        here.until(lambda: state(ledger) == "launched")
        is_held_back_until_it_ends(here, ledger, deployment, run)
        assert state(ledger) == "Completed"


def test_8_6_a_run_that_somebody_starts_holds_an_eager_flow_back(here: Installation) -> None:
    raw = here.uri("raw")
    deployment = here.deploy_declared("kept", kept([Asset(raw)], [Asset(here.uri("made"))]))
    here.begin()
    run = here.post(f"/deployments/{deployment}/create_flow_run", {})["id"]
    set_states(here, run, "PENDING", "RUNNING")
    with here.reader() as ledger:
        here.until(lambda: ledger.freshness.other_runs(10) == [UUID(run)])
        is_held_back_until_it_ends(here, ledger, deployment, run)
        assert ledger.freshness.other_runs(10) == []


def is_held_back_until_it_ends(here: Installation, ledger: Reader, deployment: str, run: str) -> None:
    """Check that an update leads to no second run before this one has ended."""
    before, made = ledger.status().last_event, ledger.decisions.find()
    here.task_recorded(recording(here.uri("raw")))
    here.until(lambda: ledger.status().last_event > before)
    # What an update leads to is decided in its own transaction.
    assert [each.id for each in ledger.decisions.find()] == [each.id for each in made]
    set_states(here, run, "COMPLETED")
    here.until(lambda: len(here.runs(deployment)) == 2)
