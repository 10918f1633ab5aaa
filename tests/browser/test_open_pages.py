"""Pages that stay open, and pages without scripts: what a reader has in hand stays, and all has an address."""

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from assetflow.core.values.assets import Asset
from tests.browser.shown import Shown, violations
from tests.browser.site import START, update
from tests.cli.shop import CUSTOMERS, HOURLY, ORDERS, ROLLED_UP, deploy

pytestmark = [pytest.mark.long, pytest.mark.browser]

FOCUSED = "[document.activeElement.tagName, document.activeElement.getAttribute('href')]"
TOP = "document.activeElement.getBoundingClientRect().top"


def test_a_change_keeps_focus_selection_and_place(shown: Shown) -> None:
    page = shown.drawn("/assets?sort=updated")
    for number in range(12):
        deploy(shown.ledger, f"many/{number}", CUSTOMERS)
    update(shown.ledger, CUSTOMERS, timedelta())
    page.reload()
    link = page.locator("#list a").nth(30)
    link.focus()
    page.evaluate("window.scrollBy(0, 200)")
    page.evaluate("getSelection().selectAllChildren(document.activeElement)")
    before = page.evaluate(FOCUSED), page.evaluate("getSelection().toString()")
    top = page.evaluate(TOP)
    assert before[1]
    with page.expect_response(re.compile("/assets")):
        update(shown.ledger, Asset(f"s3://lake/new/{uuid4()}"), START - datetime.now(UTC))
    expect(page.locator("#list .htmx-request")).to_have_count(0)
    expect(page.locator("#list")).to_contain_text("s3://lake/new/")
    assert (page.evaluate(FOCUSED), page.evaluate("getSelection().toString()")) == before
    assert abs(page.evaluate(TOP) - top) < 4


def happen(shown: Shown, name: str) -> None:
    """An update that stands above all the others."""
    update(shown.ledger, Asset(f"s3://lake/new/{name}"), START - datetime.now(UTC))


def test_new_rows_wait_while_somebody_reads(shown: Shown) -> None:
    page = shown.drawn("/activity?show=all")
    rows, unread = page.locator("#list li"), page.locator("#unread button")
    happen(shown, "at-the-top")
    expect(rows.first).to_contain_text("at-the-top")
    expect(unread).to_be_hidden()
    assert violations(page) == []
    # Scrolled down, to a row with the focus.
    rows.nth(40).get_by_role("link").first.focus()
    first, last = rows.first.inner_text(), rows.last.get_attribute("id")
    happen(shown, "while-scrolled")
    expect(unread).to_have_text("1 new")
    happen(shown, "once-more")
    expect(unread).to_have_text("2 new")
    assert rows.first.inner_text().split(" ago")[1] == first.split(" ago")[1]
    assert rows.last.get_attribute("id") == last
    # The button floats above a row, and may cover a link of it until somebody scrolls. All targets were checked above.
    assert [each for each in violations(page) if each[0] != "target-size"] == []
    assert violations(page, "'#unread'") == []
    # axe scrolls, too: if it comes to the top, the new rows do. Read on, as before.
    page.reload()
    expect(page.locator("#live-words")).to_have_text(re.compile("^Live"))
    rows.nth(40).get_by_role("link").first.focus()
    happen(shown, "read-at-last")
    expect(unread).to_have_text("1 new")
    unread.press("Enter")
    expect(rows.first).to_contain_text("read-at-last")
    expect(rows.nth(1)).to_contain_text("once-more")
    expect(rows.nth(2)).to_contain_text("while-scrolled")
    expect(unread).to_be_hidden()
    expect(page.locator("#list")).to_be_focused()


def test_what_is_typed_into_a_part_that_changes_stays(shown: Shown) -> None:
    deploy(shown.ledger, "typed/daily", ROLLED_UP)
    page = shown.drawn("/consumers/typed/daily")
    field = page.get_by_label("Open the partition with this key")
    field.press_sequentially("2026-")
    update(shown.ledger, HOURLY, timedelta(), "2026-01-01T05:00:00")
    expect(page.get_by_role("cell", name="2026-01-01", exact=True)).to_be_visible()
    expect(field).to_be_focused()
    field.press_sequentially("01")
    expect(field).to_have_value("2026-01")


def words(page: Page) -> str:
    return page.locator("body").inner_text()


def test_without_scripts_lists_details_and_forms_work(shown: Shown) -> None:
    deploy(shown.ledger, "without/scripts", ORDERS & CUSTOMERS)
    page = shown.page("/assets?search=orders", java_script_enabled=False)
    assert "Connecting" not in words(page)
    assert "reload to see what is new" in words(page)
    page.get_by_role("link", name="orders", exact=True).click()
    assert "Loading" not in words(page)
    assert "The picture needs JavaScript" in words(page)
    page.get_by_role("button", name="Create event").click()
    page.locator("dialog").get_by_label("Extra").fill('{"without": "scripts"}')
    page.locator("dialog").get_by_role("button", name="Create event").click()
    expect(page.locator("main")).to_contain_text('"without": "scripts"')
    page.goto("/consumers?search=without/scripts")
    page.get_by_role("button", name=re.compile("show the condition")).click()
    expect(page.locator("main")).to_contain_text("1 of 2 updated")
    page.goto("/consumers/without/scripts")
    page.get_by_role("button", name="Remove all").click()
    page.get_by_role("textbox", name="Why").fill("sent twice")
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator("main")).to_contain_text("removed from the queue.")
    for key in ("2026-01-01T05", "2026-01-01T07"):
        update(shown.ledger, Asset("s3://lake/slots"), timedelta(), key)
    page.goto("/asset?asset=s3://lake/slots")
    page.get_by_role("link", name="Partitions and their gaps").click()
    expect(page.get_by_role("group", name="Map of the partitions")).to_be_visible()
    page.context.close()
