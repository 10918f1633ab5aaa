"""The tutorial, followed by clicking: updates on both assets, a run that appears, and why it ran."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from assetflow.core.values.assets import Asset
from tests.browser.shown import is_complaint
from tests.environment.prefect_server import PrefectServer
from tests.integration.served_installation import KEY, ServedInstallation

pytestmark = [pytest.mark.long, pytest.mark.browser, pytest.mark.prefect, pytest.mark.timeout(400)]

# No worker takes the run, so that its badge changes from the ledger's word to Prefect's.
HANDED_OVER = re.compile("launched|Scheduled|Late")


@pytest.fixture(scope="module")
def served(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedInstallation]:
    """Evaluator, API and pages in one process, with a key."""
    installation = ServedInstallation(prefect_server, tmp_path_factory.mktemp("tutorial"))
    try:
        installation.start()
        yield installation
    finally:
        installation.close()


@pytest.fixture(scope="module")
def browsed(browser: Browser, served: ServedInstallation) -> Page:
    """A page in front of it; what its console says is in `said`."""
    page = browser.new_context(base_url=served.url, viewport={"width": 1280, "height": 900}).new_page()
    log_in(page)
    return page


@pytest.fixture
def page(browsed: Page) -> Iterator[Page]:
    """The page, whose console must stay silent."""
    said: list[str] = []
    browsed.on("console", lambda message: said.append(message.text))
    browsed.on("pageerror", lambda error: said.append(str(error)))
    yield browsed
    assert [text for text in said if is_complaint(text)] == []


@pytest.fixture
def here(served: ServedInstallation) -> Iterator[ServedInstallation]:
    served.rename()
    yield served
    served.remove_deployments()


def log_in(page: Page) -> None:
    page.goto("/assets")
    page.get_by_label("Key").fill(KEY)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Assets", exact=True)).to_be_visible()


def create_event(page: Page, asset: str, extra: str) -> None:
    """Find an asset as one types, open it, and create an event."""
    page.get_by_role("link", name="Assets", exact=True).first.click()
    page.get_by_label("Search assets").fill(asset)
    page.get_by_role("link", name=asset, exact=True).click()
    page.get_by_role("button", name="Create event").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Extra").fill(extra)
    dialog.get_by_role("button", name="Create event").click()
    expect(page.get_by_role("heading", name="What consumers did with it")).to_be_visible()


def test_events_on_both_assets_start_the_consumer_and_its_run_says_why(page: Page, here: ServedInstallation) -> None:
    orders, customers = here.uri("orders"), here.uri("customers")
    deployment = here.deploy("nightly", Asset(orders) & Asset(customers))
    name = here.deployments[deployment]
    here.wait_for_consumers()
    create_event(page, orders, '{"rows": 12}')
    expect(page.get_by_text("Waits in the queue")).to_be_visible()
    page.get_by_role("link", name="Consumers", exact=True).first.click()
    page.get_by_label("Search consumers").fill(name)
    page.get_by_role("button", name=f"1 of 2 updated: show the condition of {name}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("1 of 2 updated: waiting")).to_be_visible()
    expect(dialog.get_by_role("link", name=customers)).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    create_event(page, customers, "{}")
    page.get_by_role("link", name="Activity", exact=True).first.click()
    page.get_by_role("link", name="List", exact=True).click()
    entry = page.get_by_role("listitem").filter(has_text=f"{name} runs")
    expect(entry.get_by_text(HANDED_OVER)).to_be_visible()
    entry.get_by_role("link", name="why").click()
    expect(page.get_by_text(f"{name} runs because its condition held at ")).to_be_visible()
    rows = page.get_by_role("row").filter(has_text="somebody on the pages")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="last one needed")).to_contain_text(customers)
    run = here.run_of(deployment)
    assert page.url.endswith(f"/runs/{run['id']}")
    (note,) = here.until(lambda: here.notes(run["id"]))
    assert f"({here.url}/runs/{run['id']})" in note["data"]
    prefect = page.get_by_role("link", name="Open in Prefect").get_attribute("href")
    assert prefect is not None
    other = page.context.new_page()
    other.goto(prefect)
    expect(other.get_by_text(run["name"]).first).to_be_visible()
    other.close()


def test_pause_empty_the_queue_and_resume(page: Page, here: ServedInstallation) -> None:
    a, b = here.uri("a"), here.uri("b")
    deployment = here.deploy("paused", Asset(a) & Asset(b))
    here.wait_for_consumers()
    here.update(a)
    page.goto(f"/consumers/{here.deployments[deployment]}")
    expect(page.get_by_role("button", name="Remove all")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("is paused: its automation is switched off")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Remove all").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Why").fill("sent twice")
    dialog.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("1 event was removed from the queue.")).to_be_visible()
    expect(page.get_by_role("heading", name="Queue")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("it still needs ")).to_be_visible()
    assert here.runs(deployment) == []
