"""A day on which fifteen runs fail, in clicks: see it first, understand it, put it right."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from assetflow.api.requests import Backend
from assetflow.api.security import Access, Keys
from assetflow.ledger import Ledger
from assetflow.web import create_site
from tests.api.serving import serving
from tests.browser.shown import Clicks, Shown, violations
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, update
from tests.web.test_failed_runs import ERROR, FAILED, NEW, RUN, Prefect
from tests.web.test_needs import bad_day
from tests.web.test_traces import alike

pytestmark = [pytest.mark.long, pytest.mark.browser]

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Ledger]]:
    """The pages at one o'clock of that day, and a Prefect that knows one run."""
    with Ledger.open(tmp_path_factory.mktemp("failures") / "ledger.db", now=NOON - 2 * DAY) as ledger:
        deploy(ledger, "by-events/shop", ORDERS & CUSTOMERS, now=NOON - DAY)
        bad_day(ledger)
        update(ledger, ORDERS, 30)
        (made,) = ledger.reader.decisions.find(consumer=consumer(ledger, "forecast/shop"), limit=1)
        ledger.writer.decisions.launched(made.id, RUN, NOON)
        ledger.writer.decisions.ended("Failed", NOON + timedelta(minutes=35), flow_run_id=RUN)
        prefect = Prefect()
        prefect.runs = [FAILED | {"id": str(run)} for run in alike(ledger, 4)]
        backend = Backend(ledger, prefect.connect, now=lambda: NOON + DAY / 24)
        site = create_site(backend, Access(Keys("")))
        with serving(site) as url:
            yield url, ledger


def consumer(ledger: Ledger, name: str) -> int:
    found = ledger.reader.consumers.named(name)
    assert found is not None
    return found.consumer.id


def test_why_a_key_failed_is_one_click_and_to_run_it_again_is_two(shown: Shown) -> None:
    clicks = Clicks(shown.drawn("/"))
    clicks.on("visits/shop 2026-01-01")
    expect(clicks.page.locator("#end")).to_contain_text(ERROR)
    expect(clicks.page.locator("#end")).to_contain_text("what is queued stays queued")
    assert violations(clicks.page) == []
    clicks.on("Run again", "button")
    expect(clicks.page.get_by_role("link", name="look at it")).to_have_attribute("href", f"/runs/{NEW}")
    assert clicks.count == 2


def test_runs_that_failed_alike_are_retried_in_two_clicks(shown: Shown) -> None:
    clicks = Clicks(shown.drawn("/"))
    clicks.on("Activity")
    clicks.on("Retry all 4 mail", "button")
    expect(clicks.page.locator("main")).to_contain_text("on in Prefect")
    assert clicks.count == 2


def test_why_it_did_not_run_at_two_is_three_clicks_in_the_zone_that_is_shown(shown: Shown) -> None:
    clicks = Clicks(shown.drawn("/", timezone_id="Europe/Berlin"))
    clicks.on("Consumers")
    clicks.on("by-events/shop")
    clicks.page.get_by_label("Time, local").fill("2026-01-01T03:00")
    clicks.on("Explain", "button")
    assert "at=2026-01-01T02%3A00%3A00.000Z" in clicks.page.url
    expect(clicks.page.get_by_label("Time, local")).to_have_value("2026-01-01T03:00")
    told = clicks.page.locator("#then .story")
    expect(told).to_contain_text("At 2026-01-01 03:00:00")
    assert clicks.count == 3
    clicks.page.get_by_role("button", name="Times:").click()
    expect(clicks.page.get_by_label("Time, UTC")).to_have_value("2026-01-01T02:00")
