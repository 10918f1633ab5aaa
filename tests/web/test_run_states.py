"""States of runs in lists: as Prefect has them, asked once for all that is shown, and kept for seconds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from assetflow.errors import PrefectUnreachable
from assetflow.ledger import Ledger
from assetflow.web.prefect_runs import RunStates
from tests.cli.shop import NOON, ORDERS, deploy, update
from tests.web.conftest import MakeSite


class Prefect:
    """A Prefect that knows the states of some runs; `asked` are the runs of each request."""

    def __init__(self) -> None:
        self.states: dict[UUID, str] = {}
        self.asked: list[list[str]] = []
        self.is_away = False

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any]:
        yield self

    async def post(self, path: str, body: Any) -> Any:
        assert path == "/flow_runs/filter"
        if self.is_away:
            raise PrefectUnreachable("away")
        self.asked.append(body["flow_runs"]["id"]["any_"])
        return [
            {"id": run, "state_name": self.states[UUID(run)]}
            for run in body["flow_runs"]["id"]["any_"]
            if UUID(run) in self.states
        ]


def launched(ledger: Ledger, name: str) -> UUID:
    """Deploy a consumer, and launch a run of it."""
    deploy(ledger, name, ORDERS)
    decision = next(each for each in update(ledger, ORDERS, len(name)) if each.deployment_id)
    run = uuid4()
    ledger.writer.decisions.launched(decision.id, run, NOON)
    return run


def test_lists_show_the_states_that_prefect_has(make_site: MakeSite, ledger: Ledger) -> None:
    prefect = Prefect()
    site = make_site(prefect=prefect.connect)
    run = launched(ledger, "report/nightly")
    prefect.states[run] = "Late"

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


def test_what_is_no_run_and_a_prefect_that_is_away_change_nothing(make_site: MakeSite, ledger: Ledger) -> None:
    prefect = Prefect()
    site = make_site(prefect=prefect.connect)
    run = launched(ledger, "report/nightly")
    prefect.is_away = True
    for asked in (str(run), "", "x,y", ",".join(["z"] * 500)):
        answer = site.get("/run-states", params={"runs": asked})
        assert (answer.status_code, answer.text.strip()) == (200, "")


async def test_prefect_is_asked_once_for_all_and_again_after_seconds(ledger: Ledger) -> None:
    from assetflow.api.requests import Backend

    prefect, now = Prefect(), 100.0
    first, second = uuid4(), uuid4()
    prefect.states = {first: "Pending", second: "Running"}
    states = RunStates(Backend(ledger, prefect=prefect.connect), clock=lambda: now)

    await states.look([first, second])
    await states.look([second, first])
    assert prefect.asked == [[str(first), str(second)]]
    assert [states.shown(first), states.shown(second), states.shown(uuid4()), states.shown(None)] == [
        "Pending",
        "Running",
        "",
        "",
    ]
    now += 3
    await states.look([first])
    assert prefect.asked[1:] == [[str(first)]]
    now += 60
    assert states.shown(first) == ""
