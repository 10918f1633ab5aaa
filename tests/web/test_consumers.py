"""The pages of consumers: what each waits for, its queue, its decisions, and what an operator does there."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.core.values.schedule_values import AssetOrTimeSchedule
from assetflow.core.values.timing import Deadline, Intake
from assetflow.errors import PrefectUnreachable
from assetflow.ledger import Ledger
from assetflow.web import consumer as pages_of_consumers
from tests.api.fake_prefect import FakePrefect
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, ROLLED_UP, deploy, event_id, update
from tests.web.conftest import MakeSite, Site
from tests.web.html import read

REPORT = "/consumers/report/nightly"


def test_consumers_are_listed_with_how_far_they_are(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    consumer = deploy(ledger, "audit/all", ORDERS)
    times = AssetOrTimeSchedule(timetable="0 15 * * *", assets=CUSTOMERS)
    deploy(ledger, "mixed/times", times)
    (decision,) = update(ledger, ORDERS, -5)
    run = uuid4()
    ledger.writer.decisions.launched(decision.id, run, NOON)
    ledger.writer.consumers.switch(consumer.id, paused=True, now=NOON)
    rows = {row.split()[0]: row for row in site.page("/consumers").rows[1:]}
    assert rows["report/nightly"] == "report/nightly orders AND customers 1 of 2 updated 1 queued never"
    assert rows["audit/all"] == "audit/all orders waiting for 1 asset paused 5 min ago launched"
    assert rows["mixed/times"].endswith("2026-01-01 15:00:00")
    assert f"/runs/{run}" in site.page("/consumers").links
    assert [row.split()[0] for row in site.page("/consumers?show=paused").rows[1:]] == ["audit/all"]
    assert [row.split()[0] for row in site.page("/consumers?search=REPORT").rows[1:]] == ["report/nightly"]
    assert "No consumer has “zzz” in its name" in site.page("/consumers?search=zzz").text


def test_a_consumer_tells_why_and_shows_queue_and_decisions(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    update(ledger, ORDERS, 2)
    (decision,) = update(ledger, CUSTOMERS, 3)
    run = uuid4()
    ledger.writer.decisions.launched(decision.id, run, NOON)
    ledger.writer.decisions.ended("Completed", NOON, flow_run_id=run)
    update(ledger, ORDERS, 4)
    page = site.page(REPORT)
    assert "report/nightly has been waiting since 2026-01-01 12:03:00 UTC; it still needs customers." in page.text
    name = f"orders-customers-{str(decision.id)[:6]}"
    assert any(
        row.startswith("2026-01-01 12:03:00 orders (2), customers Completed") and name in row for row in page.rows
    )
    assert name in site.page(f"/runs/{run}").text
    assert any(row.startswith("orders 2026-01-01 12:04:00") and row.endswith("Remove") for row in page.rows)
    assert f"/events/{event_id(4)}" in page.links
    assert f"/runs/{run}" in page.links


@pytest.mark.rule("9.15")
def test_a_consumer_shows_its_next_instants_and_the_deadlines_that_it_missed(site: Site, ledger: Ledger) -> None:
    timing: dict[str, Any] = {"intake": Intake(debounce=timedelta(hours=2)), "deadline": Deadline(timedelta(hours=1))}
    deploy(ledger, "report/nightly", ORDERS | CUSTOMERS, **timing)
    update(ledger, ORDERS, 0)
    page = site.get(REPORT).text
    assert re.search(r'Waits until</dt>\s*<dd[^>]*><time datetime="2026-01-01T14:00:00Z"', page)
    assert re.search(r'Next deadline</dt>\s*<dd[^>]*><time datetime="2026-01-01T13:00:00Z"', page)
    assert "Missed deadlines" not in page
    coming = page.partition("What comes next")[2].partition("</ol>")[0]
    assert re.findall(r'<time datetime="([^"]+)".*?<span class="wrap">([^<]+)</span>', coming, re.S) == [
        ("2026-01-01T13:00:00Z", "Its deadline."),
        ("2026-01-01T14:00:00Z", "It has been quiet for long enough (debounce)."),
    ]
    ledger.writer.clock.run(NOON + timedelta(hours=1), NOON + timedelta(hours=1))
    missed = site.page(REPORT)
    assert "Missed deadlines" in missed.text
    assert any(row.endswith("customers 1 reported") for row in missed.rows)
    assert "Runs when orders OR customers was updated" in missed.text


def test_queued_events_are_removed_with_a_reason_one_or_all(site: Site, ledger: Ledger) -> None:
    consumer = deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    for minute in (1, 2, 3):
        update(ledger, ORDERS, minute)
    one = f"{REPORT}/remove?event={event_id(2)}"
    assert "Remove one event from the queue" in site.page(one).text
    refused = site.submit(f"{REPORT}/remove", one, f"{REPORT}/remove", why=" ")
    assert refused.status_code == 422
    assert "The reason is blank. Give a reason, which is kept" in read(refused.text).text
    done = site.submit(f"{REPORT}/remove", one, f"{REPORT}/remove", why="sent <b>twice</b>")
    assert done.headers["location"] == f"{REPORT}?removed=1"
    assert "1 event was removed from the queue." in site.page(done.headers["location"]).text
    (receipt,) = ledger.reader.receipts.of_event(event_id(2))
    assert (receipt.receipt.status, receipt.receipt.why) == ("removed", "sent <b>twice</b>")
    assert site.submit(f"{REPORT}/remove", REPORT, f"{REPORT}/remove", why="all").headers["location"].endswith("=2")
    assert ledger.reader.queues.events(consumer.id) == []
    assert "Queue" not in site.page(REPORT).text.split()


def prefect(error: Exception | None = None, times: int = 100) -> FakePrefect:
    """A Prefect that fails so many times, and then makes a run."""
    fails = iter([error] * times if error else [])

    def answer(_path: str, _body: object) -> dict[str, str]:
        if failed := next(fails, None):
            raise failed
        return {"id": str(UUID(int=5)), "state_type": "SCHEDULED"}

    return FakePrefect(answer)


def test_run_now_starts_a_run_that_consumes_nothing(make_site: MakeSite, ledger: Ledger) -> None:
    consumer = deploy(ledger, "daily/rollup", ROLLED_UP)
    told = prefect()
    site, place = make_site(prefect=told.connect), "/consumers/daily/rollup"
    assert "The run consumes nothing" in site.page(place).text
    refused = site.submit(f"{place}/run", place, f"{place}/run", partition_key="x" * 300)
    assert refused.status_code == 422
    done = site.submit(f"{place}/run", place, f"{place}/run", partition_key="2026-01-01")
    assert done.headers["location"] == f"{place}?started={UUID(int=5)}"
    assert "A flow run was started." in site.page(done.headers["location"]).text
    ((path, body),) = told.asked
    assert path == f"/deployments/{consumer.deployment_id}/create_flow_run"
    assert body["context"]["assetflow"]["partition_key"] == "2026-01-01"


def test_a_switch_that_prefect_refuses_is_told_on_the_page(make_site: MakeSite, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS)
    site = make_site(prefect=prefect(PrefectUnreachable("Prefect does not answer", fix="Start it")).connect)
    answer = site.submit(f"{REPORT}/switch", REPORT, f"{REPORT}/switch")
    assert answer.status_code == 503
    page = read(answer.text)
    assert "Nothing was changed. Prefect does not answer. Start it" in page.text
    assert "Why it runs, or does not" in page.text
    assert site.get(f"{REPORT}/switch").headers["location"] == REPORT


def test_the_consumers_of_a_page_are_paused_at_once(
    make_site: MakeSite, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("report/a", "report/b", "audit/all"):
        deploy(ledger, name, ORDERS)
    switched: list[tuple[str, bool]] = []

    async def switch(_: object, record: Any, *, paused: bool) -> None:
        if record.consumer.name == "audit/all":
            raise PrefectUnreachable("away", fix="Start it")
        switched.append((record.consumer.name, paused))

    monkeypatch.setattr(pages_of_consumers, "switch", switch)
    site = make_site()
    asked = "/consumers/switch?search=report&sort=name&paused=yes"
    assert site.page("/consumers?search=report").form("/consumers/switch") == {"search": "report", "sort": "name"}
    assert "Pause 2 consumers" in site.page(asked).text
    done = site.submit("/consumers/switch?search=report", asked, "/consumers/switch")
    assert (done.status_code, done.headers["location"]) == (303, "/consumers?search=report&switched=2")
    assert switched == [("report/a", True), ("report/b", True)]
    assert "asked to switch 2 consumers" in site.page(done.headers["location"]).text
    refused = site.submit("/consumers/switch", "/consumers/switch?paused=yes", "/consumers/switch")
    assert refused.status_code == 409
    assert "audit/all was not changed. Away. Start it" in read(refused.text).text
