"""Every page and dialog in both themes: axe finds nothing (WCAG 2.2 AA), and nothing is wider than the screen."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from assetflow.ledger import Ledger
from tests.browser.every_page import every_page, fill_more
from tests.browser.shown import Shown, Theme, violations
from tests.browser.site import running_site

pytestmark = [pytest.mark.long, pytest.mark.browser]

NOT_THERE = {"asset-unknown", "graph-unknown", "not-found"}
LOOKS: list[tuple[Theme, int]] = [("light", 1280), ("dark", 390)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Ledger]]:
    with running_site(tmp_path_factory.mktemp("every-page") / "ledger.db") as (url, ledger):
        fill_more(ledger)
        yield url, ledger


def check(page: Page, width: int) -> list[object]:
    """Return what is wrong with a page once everything is there."""
    expect(page.locator("#graph[data-nodes]")).to_have_count(page.locator("#graph").count())
    expect(page.locator(".htmx-request")).to_have_count(0)
    wide = page.evaluate("document.documentElement.scrollWidth")
    return [*violations(page), *([f"{wide} pixels wide"] if wide > width else [])]


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_every_page_and_dialog_is_accessible_and_fits(shown: Shown, theme: Theme, width: int) -> None:
    found: dict[str, list[object]] = {}
    page = shown.page("/", theme, width)
    for name, path in {**every_page(shown.ledger), "evil": "/asset?asset=s3://lake/evil"}.items():
        answer = page.goto(path)
        assert answer is not None
        assert (answer.status == 404) == (name in NOT_THERE), (name, answer.status)
        found[name] = check(page, width)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    # The browser says so by itself, of any page that is not found.
    shown.complaints[:] = [each for each in shown.complaints if "status of 404" not in each]


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_dialogs_that_open_on_a_page_are_accessible(shown: Shown, theme: Theme, width: int) -> None:
    page = shown.drawn("/consumers?search=report", theme, width)
    page.get_by_role("button", name="show the condition").first.click()
    expect(page.get_by_role("dialog").get_by_role("listitem").first).to_be_visible()
    assert check(page, width) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("orders")
    expect(page.locator("#hits")).to_contain_text("orders")
    assert check(page, width) == []


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_the_login_is_accessible(browser: Browser, tmp_path: Path, theme: Theme, width: int) -> None:
    with running_site(tmp_path / "ledger.db", key="a-key") as (url, ledger):
        page = Shown(browser, url, ledger).page("/", theme, width)
        assert check(page, width) == []
        page.get_by_label("Key").fill("no key")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_text("The API key is wrong.")).to_be_visible()
        assert check(page, width) == []
        page.context.close()
