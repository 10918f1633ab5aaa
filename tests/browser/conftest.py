"""A browser in front of the embedded stack's Prefect, and one in front of the pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from assetflow.ledger import Ledger
from tests.browser.shown import Shown
from tests.browser.site import running_site
from tests.environment.needs import chromium

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

# What is there at once on an idle machine may take its time on a busy one. In milliseconds.
PATIENCE = 30_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Ledger]]:
    with running_site(tmp_path_factory.mktemp("pages") / "ledger.db") as site:
        yield site


@pytest.fixture
def shown(browser: Browser, served: tuple[str, Ledger]) -> Iterator[Shown]:
    shown = Shown(browser, *served)
    yield shown
    for context in browser.contexts:
        context.close()
    assert not shown.complaints
