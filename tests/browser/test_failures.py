"""A day on which fifteen runs fail, in clicks: see it first, understand it, put it right."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from assetflow import Eager, Lazy
from assetflow.api.requests import Backend
from assetflow.api.security import Access, Keys
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.ledger import Ledger
from assetflow.web import create_site
from tests.api.serving import serving
from tests.browser.clicks import Clicks
from tests.browser.shown import THEMES, Shown, Theme, violations
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, update
from tests.ledger.making import deploy_maker
from tests.web.test_failed_runs import ERROR, FAILED, NEW, RUN, Prefect
from tests.web.test_needs import bad_day
from tests.web.test_traces import alike

pytestmark = [pytest.mark.long, pytest.mark.browser]

DAY = timedelta(days=1)
AWAY: dict[str, str] = {}
EAGER, LAZY = Asset("s3://lake/eager"), Asset("s3://lake/lazy", freshness=FreshnessPolicy(DAY))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Ledger]]:
    """The pages at one o'clock of that day, with a flow of each kind of schedule, and a Prefect that knows one run."""
    with Ledger.open(tmp_path_factory.mktemp("failures") / "ledger.db", now=NOON - 2 * DAY) as ledger:
        deploy(ledger, "by-events/shop", ORDERS & CUSTOMERS, now=NOON - DAY)
        deploy(ledger, "by-clock/shop", "0 3 * * *", now=NOON - DAY)
        deploy_maker(ledger, Eager(), [EAGER], [ORDERS], "eager/shop", at=NOON - DAY)
        deploy_maker(ledger, Lazy(), [LAZY], [ORDERS], "lazy/shop", at=NOON - DAY)
        bad_day(ledger)
        update(ledger, ORDERS, 30)
        (made,) = ledger.reader.decisions.find(consumer=consumer(ledger, "forecast/shop"), limit=1)
        ledger.writer.decisions.launched(made.id, RUN, NOON)
        ledger.writer.decisions.ended("Failed", NOON + timedelta(minutes=35), flow_run_id=RUN)
        prefect = Prefect()
        prefect.runs = [FAILED | {"id": str(run)} for run in alike(ledger, 4)]
        backend = Backend(ledger, prefect.connect, now=lambda: NOON + DAY / 24, troubles=lambda: AWAY)
        site = create_site(backend, Access(Keys("")))
        with serving(site) as url:
            yield url, ledger


def consumer(ledger: Ledger, name: str) -> int:
    found = ledger.reader.consumers.named(name)
    assert found is not None
    return found.consumer.id


def test_the_failed_runs_of_today_are_one_click(shown: Shown) -> None:
    clicks = Clicks(shown.drawn("/"))
    clicks.on("Failed runs of today")
    expect(clicks.page.locator("tbody tr")).to_have_count(15)
    assert clicks.count == 1


def test_all_that_was_not_made_good_is_on_the_overview(shown: Shown) -> None:
    needs = shown.drawn("/").get_by_role("region", name="Needs you")
    for name in ("forecast/shop", "visits/shop 2026-01-01", "nightly/shop", "fraud-check/shop"):
        expect(needs.get_by_role("link", name=name, exact=True)).to_be_visible()
    expect(needs).not_to_contain_text("loader/shop")


@pytest.mark.parametrize("width", [1440, 390])
def test_a_server_that_does_not_answer_comes_first_and_its_words_are_not_cut(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setitem(AWAY, "Prefect", "http://prefect.shop:4200/api does not answer: all connection attempts failed")
    needs = shown.drawn("/", width=width).get_by_role("region", name="Needs you").locator("li")
    expect(needs.nth(0)).to_contain_text("No evaluator is running")
    expect(needs.nth(1)).to_contain_text("server")
    expect(needs.nth(1)).to_contain_text("prefect.shop:4200/api does not answer")
    for line in (needs.nth(0), needs.nth(1), needs.filter(has_text="8 times since")):
        assert line.locator(".what").evaluate("what => what.scrollHeight <= what.clientHeight + 1")


def test_why_a_key_failed_is_one_click_and_to_run_it_again_is_two(shown: Shown) -> None:
    clicks = Clicks(shown.drawn("/"))
    clicks.on("visits/shop 2026-01-01")
    expect(clicks.page.locator("#end")).to_contain_text(ERROR)
    expect(clicks.page.locator("#end")).to_contain_text("what is queued stays queued")
    assert violations(clicks.page) == []
    clicks.on("Run again", "button")
    expect(clicks.page.get_by_role("link", name="look at it")).to_have_attribute("href", f"/runs/{NEW}")
    assert clicks.count == 2


def test_what_an_update_led_to_is_one_click_and_to_run_again_what_failed_is_two(shown: Shown) -> None:
    clicks = Clicks(shown.drawn("/"))
    clicks.on("Activity")
    tree = clicks.page.locator("section").filter(has_text="by the API").filter(has=clicks.page.get_by_text("orders"))
    expect(tree.first).to_contain_text("forecast/shop")
    expect(tree.first).to_contain_text("Failed")
    assert clicks.count == 1
    clicks.on("Run again forecast/shop", "button")
    expect(clicks.page.locator("main")).to_contain_text("A flow run was started")
    assert clicks.count == 2


def test_runs_that_failed_alike_are_retried_in_two_clicks(shown: Shown) -> None:
    clicks = Clicks(shown.drawn("/"))
    clicks.on("Activity")
    clicks.on("Retry all 4 mail", "button")
    expect(clicks.page.locator("main")).to_contain_text("on in Prefect")
    assert clicks.count == 2


@pytest.mark.parametrize("flow", ["by-events", "by-clock", "eager", "lazy"])
def test_why_it_did_not_run_at_two_is_three_clicks_in_the_zone_that_is_shown(shown: Shown, flow: str) -> None:
    clicks = Clicks(shown.drawn("/", timezone_id="Europe/Berlin"))
    clicks.on("Consumers")
    clicks.on(f"{flow}/shop")
    clicks.page.get_by_label("Time, local").fill("2026-01-01T03:00")
    clicks.on("Explain", "button")
    assert "at=2026-01-01T02%3A00%3A00.000Z" in clicks.page.url
    expect(clicks.page.get_by_label("Time, local")).to_have_value("2026-01-01T03:00")
    told = clicks.page.locator("#then .story")
    expect(told).to_contain_text("At 2026-01-01 03:00:00")
    assert clicks.count == 3
    clicks.page.get_by_role("button", name="Times:").click()
    expect(clicks.page.get_by_label("Time, UTC")).to_have_value("2026-01-01T02:00")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [1440, 390])
def test_the_pages_of_that_day_are_accessible_and_fit(shown: Shown, theme: Theme, width: int) -> None:
    crashed = shown.ledger.reader.ended_runs.find(failed=True, flow="orders-producer/shop")[0].flow_run_id
    for path in ("/", "/runs?failed=true&day=today", "/runs", "/activity", "/activity/orders", f"/runs/{crashed}"):
        page = shown.drawn(path, theme, width)
        if path.startswith("/runs/"):
            expect(page.locator("#end")).to_contain_text(ERROR)
        assert violations(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
