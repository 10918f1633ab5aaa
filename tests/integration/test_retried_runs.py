"""Runs that somebody retries in Prefect: the evaluator hears of it, or finds it later (contract 4.7, 8.6)."""

import pytest

from assetflow import Asset, TriggeringAssetEvents, flow
from assetflow.errors import Conflict
from assetflow.ledger import Reader
from assetflow.testing import harness
from tests.environment.prefect_server import PrefectServer
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


def test_4_7_the_end_of_a_retry_counts_also_if_no_evaluator_ran(here: Installation) -> None:
    deployment = here.deploy("later", Asset(here.uri("a")))
    here.begin()
    here.task_recorded(recording(here.uri("a")))
    run = here.run_of(deployment)["id"]
    with here.reader() as ledger:
        set_states(here, run, "RUNNING", "FAILED")
        here.until(lambda: state(ledger) == "Failed")
        here.kill()
        set_states(here, run, "SCHEDULED", "RUNNING", "COMPLETED")
        here.start()
        here.until(lambda: state(ledger) == "Completed")


works: list[bool] = []
raw = Asset("s3://retried/raw")


@flow(schedule=raw)
def report(triggering_asset_events: TriggeringAssetEvents) -> None:
    assert works, f"the database is away, with {len(triggering_asset_events[raw])} update"


def test_4_7_assetflow_retry_runs_a_failed_run_again_with_its_updates(
    prefect_here: PrefectServer,  # noqa: ARG001
) -> None:
    works.clear()
    with harness(use_running_server=True, timeout=120) as h:
        h.deploy(report)
        h.emit(raw)
        (failed,) = h.settle().runs(report)
        assert (failed.state, len(failed.events)) == ("Failed", 1)
        works.append(True)
        (again,) = h.retry(report).settle().runs(report)
        assert (again.id, again.state, len(again.events)) == (failed.id, "Completed", 1)
        with pytest.raises(Conflict, match="no failed run"):
            h.retry(report)
