"""The page of a run that failed: why, the end of its log, and what puts it right."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.rules.ended_runs import EndedRun
from assetflow.errors import PrefectUnreachable
from assetflow.ledger import Ledger
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, update
from tests.web.conftest import MakeSite

RUN, NEW = UUID(int=11), UUID(int=12)
DEPLOYMENT = UUID(int=13)
ERROR = "ValueError: could not convert 'n/a' in price_eur"
FAILED = {
    "id": str(RUN),
    "name": "wise-otter",
    "state_type": "FAILED",
    "state_name": "Failed",
    "state": {"message": f"Flow run encountered an exception: {ERROR}", "timestamp": "2026-01-01T12:05:00Z"},
    "deployment_id": str(DEPLOYMENT),
    "parameters": {"partition_key": "2026"},
    "context": {"assetflow": {"version": 1, "events": "[]"}},
}


class Prefect:
    """A Prefect with one run, or with `runs`, and a log, newest line first; `asked` are the writes."""

    def __init__(self, **run: Any) -> None:
        self.run: dict[str, Any] | None = FAILED | run
        self.asked: list[tuple[str, Any]] = []
        self.is_away = False
        self.runs: list[dict[str, Any]] = []

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any]:
        if self.is_away:
            raise PrefectUnreachable("Prefect does not answer", fix="Is it up?")
        yield self

    async def get(self, _path: str) -> Any:
        return self.run

    async def post(self, path: str, body: Any) -> Any:
        if path == "/logs/filter":
            lines = [(40, "Encountered <b>an</b> exception"), (20, "Reading amqp://me:secret@mq/orders")]
            return [{"timestamp": "2026-01-01T12:05:00Z", "level": level, "message": text} for level, text in lines]
        if path == "/flow_runs/filter":
            return self.runs or ([] if self.run is None else [self.run])
        self.asked.append((path, body))
        return {"id": str(NEW)}


def failed(ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS, produces=())
    update(ledger, ORDERS, 1)
    (decision,) = update(ledger, CUSTOMERS, 2)
    ledger.writer.decisions.launched(decision.id, RUN, NOON)
    ledger.writer.decisions.ended("Failed", NOON, flow_run_id=RUN)


def test_a_failed_run_shows_why_the_end_of_its_log_and_what_it_would_start(make_site: MakeSite, ledger: Ledger) -> None:
    failed(ledger)
    site = make_site(prefect=Prefect().connect)
    page = site.page(f"/runs/{RUN}")
    assert f"/runs/{RUN}/end" in [each.get("hx-get") for each in page.named("div")]
    (last,) = [row for row in page.rows if row.startswith("customers")]
    assert last.endswith("last one needed")
    assert "good" not in str(page.named("tr"))
    end = site.page(f"/runs/{RUN}/end")
    assert f"Why it failed Failed {ERROR}" in end.text
    assert end.text.index("Reading amqp://") < end.text.index("Encountered <b>an</b> exception")
    assert "secret" not in end.text
    assert "given what this one was given, the 2 updates of orders, customers, and consume nothing" in end.text
    previews = [each["hx-get"] for each in end.named("div") if "preview" in each.get("hx-get", "")]
    assert previews == ["/consumers/report/nightly/run/preview"]


def test_why_it_failed_is_there_while_prefect_is_away_or_has_deleted_it(make_site: MakeSite, ledger: Ledger) -> None:
    failed(ledger)
    (made,) = ledger.reader.decisions.find()
    of = (0, RUN, "wise-otter", made.deployment_id, "", None, "Failed", "failed", "decision", made.id)
    ledger.writer.ended_runs.add([EndedRun(*of, NOON, NOON, NOON, ERROR, state_at=NOON)], NOON)
    prefect = Prefect()
    site = make_site(prefect=prefect.connect)
    prefect.run = None
    assert f"Why it failed {ERROR} Prefect does not know this run" in site.page(f"/runs/{RUN}/end").text
    prefect.is_away = True
    assert f"Why it failed {ERROR} Prefect does not answer" in site.page(f"/runs/{RUN}/end").text


@pytest.mark.rule("4.5")
def test_a_run_is_retried_or_started_again_with_what_it_was_given(make_site: MakeSite, ledger: Ledger) -> None:
    failed(ledger)
    prefect = Prefect()
    site, end = make_site(prefect=prefect.connect), f"/runs/{RUN}/end"
    done = site.submit(f"/runs/{RUN}/retry", end, f"/runs/{RUN}/retry")
    assert "Prefect runs it again" in site.page(done.headers["location"]).text
    done = site.submit(f"/runs/{RUN}/again", end, f"/runs/{RUN}/again")
    assert f"/runs/{NEW}" in site.page(done.headers["location"]).links
    (retried, state), (created, body) = prefect.asked
    assert (retried, state["state"]["name"]) == (f"/flow_runs/{RUN}/set_state", "AwaitingRetry")
    assert created == f"/deployments/{DEPLOYMENT}/create_flow_run"
    assert (body["parameters"], body["context"]) == (FAILED["parameters"], FAILED["context"])
    assert "labels" not in body, "it is the run of no decision"


@pytest.mark.rule("4.5")
def test_a_form_that_is_sent_twice_asks_for_one_run(make_site: MakeSite, ledger: Ledger) -> None:
    failed(ledger)
    prefect = Prefect()
    site, end = make_site(prefect=prefect.connect), f"/runs/{RUN}/end"
    for form, action in ((end, f"/runs/{RUN}/again"), ("/consumers/report/nightly", "/consumers/report/nightly/run")):
        shown, shown_later = (site.page(form).form(action) for _ in range(2))
        places = [site.post(action, data=fields).headers["location"] for fields in (shown, shown, shown_later)]
        assert str(NEW) in places[0]
        first, second, later = (body["idempotency_key"] for _, body in prefect.asked[-3:])
        assert first == second != later
        site.post(action, data=shown | {"partition_key": "2027"})
        assert prefect.asked[-1][1]["idempotency_key"] != first, "it was filled in otherwise"
