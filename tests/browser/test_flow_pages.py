"""The pages of consumers, runs and the activity in a browser: both themes, a narrow screen, and without harm."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Literal
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, expect

from assetflow.core.values.assets import AssetAlias
from assetflow.core.values.events import Origin, SourceFlowRun
from assetflow.ledger import Ledger
from tests.browser.shown import Shown, violations
from tests.browser.site import EVIL, EVIL_ASSET, REPORT, START, running_site, update
from tests.cli.shop import HOURLY, ORDERS, ROLLED_UP, deploy

pytestmark = [pytest.mark.long, pytest.mark.browser]

Paths = list[str]


def run_everything(ledger: Ledger) -> Paths:
    """Decisions of every kind, with runs of the first ones; the pages that show them."""
    deploy(ledger, f"{EVIL[:20]}/nightly", EVIL_ASSET & AssetAlias(EVIL) & ORDERS)
    deploy(ledger, "daily/rollup", ROLLED_UP)
    update(ledger, HOURLY, timedelta(), "2026-01-01T05:00:00")
    waiting = ledger.reader.decisions.waiting(limit=3)
    runs = [uuid4() for _ in waiting]
    for (decision, _), run in zip(waiting, runs, strict=True):
        ledger.writer.decisions.launched(decision.id, run, START)
    source = SourceFlowRun(runs[0], EVIL, flow_name=EVIL, deployment_name="nightly")
    update(ledger, REPORT, timedelta(), origin=Origin("task", flow_run=source))
    (left, _) = ledger.reader.decisions.waiting(limit=1)[0]
    ledger.writer.decisions.undeliverable(left.id, f"Prefect answers 409: {EVIL}", START)
    paths = ["/consumers", "/consumers/report/nightly", "/consumers/daily/rollup?key=2026-01-01", "/activity"]
    return [*paths, f"/runs/{runs[0]}", f"/decisions/{left.id}", "/activity?asset=nothing"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Ledger, Paths]]:
    with running_site(tmp_path_factory.mktemp("flow-pages") / "ledger.db") as (url, ledger):
        yield url, ledger, run_everything(ledger)


@pytest.fixture
def shown(browser: Browser, served: tuple[str, Ledger, Paths]) -> Iterator[Shown]:
    shown = Shown(browser, served[0], served[1])
    yield shown
    for context in browser.contexts:
        context.close()
    assert not shown.complaints


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
def test_pages_are_accessible_and_fit(
    shown: Shown, served: tuple[str, Ledger, Paths], theme: Literal["light", "dark"], width: int
) -> None:
    for path in served[2]:
        page = shown.drawn(path, theme, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert violations(page) == [], path
        assert page.locator("main img, main script").count() == 0
        assert page.title().endswith(" · assetflow")
        page.context.close()


def test_the_condition_pops_up_and_goes_by_keyboard(shown: Shown) -> None:
    page = shown.drawn("/consumers?search=report")
    page.get_by_role("button", name="waiting for 2 assets").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_have_count(3)
    assert violations(page, "document.querySelector('dialog')") == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="waiting for 2 assets")).to_be_focused()


def test_filters_of_the_activity(shown: Shown) -> None:
    page = shown.drawn("/activity?show=all")
    page.get_by_label("What is shown").select_option("Decisions")
    expect(page.locator(".happened").get_by_text("update", exact=True)).to_have_count(0)
    page.get_by_label("Asset, by name or URI").fill("customers")
    page.get_by_label("What is shown").select_option("Updates")
    expect(page.locator(".happened > li")).to_have_count(1)
    page.get_by_label("Asset, by name or URI").fill("customrs")
    expect(page.get_by_text("Similar names: customers")).to_be_visible()
