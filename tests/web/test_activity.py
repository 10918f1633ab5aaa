"""The pages of runs and of the activity: why something ran, what it consumed and produced, and what happens."""

from uuid import UUID, uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Origin, SourceFlowRun, SourceTaskRun
from assetflow.ledger import Ledger
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, event_id, update
from tests.web.conftest import MakeSite, Site
from tests.web.html import read

REPORT = Asset("s3://lake/report", name="report")
RUN, SOURCE = UUID(int=11), UUID(int=12)
PREFECT = "http://127.0.0.1:4200"


@pytest.fixture(autouse=True)
def _prefect(ledger: Ledger) -> None:
    ledger.writer.set_prefect_api_url(f"{PREFECT}/api")


def made_by(run: UUID) -> Origin:
    source = SourceFlowRun(run, "calm-fox", flow_name="report", deployment_name="nightly")
    return Origin("task", SourceTaskRun(UUID(int=13), "build-1a2"), source)


def ran(ledger: Ledger) -> UUID:
    """report/nightly has run on two updates, and updated the report; its decision."""
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS, produces=(REPORT,))
    update(ledger, ORDERS, 1, origin=made_by(SOURCE))
    (decision,) = update(ledger, CUSTOMERS, 2)
    ledger.writer.decisions.launched(decision.id, RUN, NOON)
    ledger.writer.decisions.ended("Completed", NOON, flow_run_id=RUN)
    update(ledger, REPORT, 3, origin=made_by(RUN))
    return decision.id


def test_pages_of_runs_say_why_what_was_consumed_and_what_was_produced(site: Site, ledger: Ledger) -> None:
    ran(ledger)
    page = site.page(f"/runs/{RUN}")
    assert "report/nightly runs because its condition held at 2026-01-01 12:02:00 UTC, with 2 events." in page.text
    shown = ["orders", "customers", "report"]
    assert [row.split()[0] for row in page.rows if row.startswith(("orders", "customers", "report"))] == shown
    assert [given["href"] for given in page.named("a") if given.get("aria-current") == "page"] == ["/runs"]
    assert "Runs / report/nightly / Run" in page.text
    (last,) = [row for row in page.rows if "last one needed" in row]
    assert last.startswith("customers")
    assert f"/runs/{SOURCE}" in page.links
    assert f"/events/{event_id(3)}" in page.links
    assert f"{PREFECT}/runs/flow-run/{RUN}" in page.links
    assert f"{PREFECT}/runs/task-run/{UUID(int=13)}" in page.links
    page = site.page(f"/runs/{SOURCE}")
    assert "No decision of assetflow started the run" in page.text
    assert [given["href"] for given in page.named("a") if given.get("aria-current") == "page"] == ["/runs"]
    assert "Runs / report/nightly / Run calm-fox" in page.text
    assert any(row.startswith("orders") for row in page.rows)
    assert "<th>Partition</th>" not in site.get(f"/runs/{SOURCE}").text, "no update has a key"


def test_a_decision_leads_to_its_run_and_one_without_says_why_it_has_none(make_site: MakeSite, ledger: Ledger) -> None:
    woken: list[int] = []
    site = make_site(on_recorded=lambda: woken.append(1))
    assert site.get(f"/decisions/{ran(ledger)}").headers["location"] == f"/runs/{RUN}"
    update(ledger, ORDERS, 4)
    (decision,) = update(ledger, CUSTOMERS, 5)
    address = f"/decisions/{decision.id}"
    assert "Its run is not started yet." in site.page(address).text
    ledger.writer.decisions.undeliverable(decision.id, "Prefect answers 409: a parameter is missing", NOON)
    page = site.page(address)
    assert "It could not be delivered, and has no run: Prefect answers 409: a parameter is missing." in page.text
    assert "report/nightly" in site.page("/activity?show=undeliverable").text
    assert "Nothing matches" in site.page("/activity?show=undeliverable&consumer=report/nightly&decisions=1").text
    assert site.submit(f"{address}/replay", address, f"{address}/replay").headers["location"] == address
    assert woken == [1]
    hidden = page.form(f"{address}/replay")
    refused = site.post(f"{address}/replay", data=hidden)
    assert refused.status_code == 409
    assert "Nothing was changed." in read(refused.text).text
    assert "Why it was decided" in refused.text
    assert site.get(f"{address}/replay").headers["location"] == address
    assert "Its run is not started yet." in site.page(address).text
    assert site.get(f"/decisions/{uuid4()}").status_code == 404
