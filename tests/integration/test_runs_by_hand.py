"""Runs of Eager flows that somebody starts in Prefect: the evaluator hears of them, or finds them (contract 8.6)."""

from uuid import UUID

import pytest

from assetflow.core.values.assets import Asset
from tests.integration.installation import Installation, recording
from tests.ledger.write.test_kept import kept

pytestmark = [pytest.mark.long, pytest.mark.prefect]


def set_state(here: Installation, run: str, state: str) -> None:
    here.post(f"/flow_runs/{run}/set_state", {"state": {"type": state}, "force": True})


def run_by_hand(here: Installation, deployment: str) -> str:
    """Let somebody start a run, which is running now; its id."""
    run = here.post(f"/deployments/{deployment}/create_flow_run", {})["id"]
    for state in ("PENDING", "RUNNING"):
        set_state(here, run, state)
    return run


@pytest.mark.parametrize("heard", [True, False], ids=["heard", "found"])
def test_8_6_a_run_that_somebody_starts_holds_an_eager_flow_back(here: Installation, heard: bool) -> None:
    raw = here.uri("raw")
    deployment = here.deploy_declared("kept", kept([Asset(raw)], [Asset(here.uri("made"))]))
    here.begin()
    if not heard:
        here.kill()
    run = run_by_hand(here, deployment)
    if not heard:
        here.start()
    with here.reader() as ledger:
        here.until(lambda: ledger.freshness.other_runs(10) == [UUID(run)])
        before = ledger.status().last_event
        here.task_recorded(recording(raw))
        here.until(lambda: ledger.status().last_event > before)
        assert [each["id"] for each in here.runs(deployment)] == [run]
        set_state(here, run, "COMPLETED")
        here.until(lambda: len(here.runs(deployment)) == 2)
        assert ledger.freshness.other_runs(10) == []
