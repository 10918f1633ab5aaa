"""Runs of Eager flows that somebody starts in Prefect: the evaluator hears of them, or finds them (contract 8.6)."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger import Reader
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


def names(ledger: Reader) -> set[str]:
    return {each.consumer.name for each in ledger.consumers.all()}


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


def test_8_6_a_run_that_began_while_no_evaluator_ran_holds_back_what_an_update_of_then_asks_for(
    here: Installation,
) -> None:
    raw = here.uri("raw")
    deployment = here.deploy_declared("kept", kept([Asset(raw)], [Asset(here.uri("made"))]))
    here.begin()
    here.kill()
    run = run_by_hand(here, deployment)
    here.task_recorded(recording(raw))
    here.start()
    with here.reader() as ledger:
        here.until(lambda: ledger.status().last_event == 1)
        here.until(lambda: ledger.freshness.other_runs(10) == [UUID(run)])
        assert [each["id"] for each in here.runs(deployment)] == [run]
        set_state(here, run, "COMPLETED")
        here.until(lambda: len(here.runs(deployment)) == 2)


def test_8_6_an_eager_flow_waits_for_a_run_of_a_flow_without_a_schedule(here: Installation) -> None:
    raw, core, board = (Asset(here.uri(name)) for name in ("raw", "core", "board"))
    maker = here.deploy_declared("core", FlowDeclaration(ConsumerOptions(), (core,), (raw,)))
    below = here.deploy_declared("board", kept([core], [board]))
    here.start()
    with here.reader() as ledger:

        def producer() -> str | None:
            return ledger.freshness.status(core.uri, None, datetime.now(UTC)).producer

        here.until(lambda: producer() == here.deployments[maker])
        here.until(lambda: here.deployments[below] in names(ledger))
        assert here.deployments[maker] not in names(ledger)
        run = run_by_hand(here, maker)
        here.until(lambda: ledger.freshness.other_runs(10) == [UUID(run)])
        here.task_recorded(recording(core.uri))
        here.until(lambda: ledger.status().last_event == 1)
        assert here.runs(below) == []
        set_state(here, run, "COMPLETED")
        here.run_of(below)
        assert here.http.delete(f"/deployments/{maker}").is_success
        here.until(lambda: producer() is None)
