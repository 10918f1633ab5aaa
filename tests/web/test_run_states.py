"""States of runs in lists: as Prefect has them, asked once for all that is shown, and kept for seconds."""

from typing import Any
from uuid import UUID, uuid4

from assetflow.ledger import Ledger
from tests.api.fake_prefect import FakePrefect
from tests.cli.shop import NOON, ORDERS, deploy, update
from tests.web.conftest import MakeSite


def knows(states: dict[UUID, str]) -> FakePrefect:
    """A Prefect that knows the states of some runs."""

    def answer(path: str, body: Any) -> list[dict[str, str]]:
        assert path == "/flow_runs/filter"
        asked = [UUID(run) for run in body["flow_runs"]["id"]["any_"]]
        return [{"id": str(run), "state_name": states[run]} for run in asked if run in states]

    return FakePrefect(answer)


def launched(ledger: Ledger, name: str) -> UUID:
    """Deploy a consumer, and launch a run of it."""
    deploy(ledger, name, ORDERS)
    decision = next(each for each in update(ledger, ORDERS, len(name)) if each.deployment_id)
    run = uuid4()
    ledger.writer.decisions.launched(decision.id, run, NOON)
    return run


def test_lists_show_the_states_that_prefect_has(make_site: MakeSite, ledger: Ledger) -> None:
    run = launched(ledger, "report/nightly")
    site = make_site(prefect=knows({run: "Late"}).connect)
    for page in ("/consumers", "/activity", "/", "/consumers/report/nightly", f"/runs/{run}"):
        (asks,) = [each["hx-get"] for each in site.page(page).named("div") if "run-states" in each.get("hx-get", "")]
        assert asks == f"/run-states?runs={run}"
    assert "launched" in site.page("/consumers").rows[1].lower()
    answer = site.get(f"/run-states?runs={run}").text
    assert f'hx-swap-oob="innerHTML:.state-{run}"' in answer
    assert "Late" in answer
    # What Prefect has said is shown by the next page too, so that nothing flickers.
    assert "Late" in site.page("/consumers").rows[1]
    ledger.writer.decisions.ended("Completed", NOON, flow_run_id=run)
    assert "Completed" in site.page("/consumers").rows[1]
    assert not [each for each in site.page("/consumers").named("div") if "run-states" in each.get("hx-get", "")]
