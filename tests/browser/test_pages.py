"""The pages of assets as a person uses them: both themes, keyboard only, a narrow screen, live, and without harm."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from assetflow.api.requests import Backend
from assetflow.api.security import Access, Keys
from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from assetflow.web import create_site
from tests.api.serving import serving
from tests.browser.shown import Shown, violations
from tests.browser.site import EVIL, START, running_site, update
from tests.cli.shop import CUSTOMERS, ORDERS, deploy

pytestmark = [pytest.mark.long, pytest.mark.browser]


def test_text_of_users_does_nothing(shown: Shown) -> None:
    for path in ("/assets", "/asset?asset=s3://lake/evil", f"/assets?search={EVIL[:30]}"):
        page = shown.drawn(path)
        assert page.title() in ("Assets · assetflow", "evil <b>{{7*7}}</b> · assetflow")
        assert page.locator("main img, main script").count() == 0
    page.goto("/asset?asset=s3://lake/evil")
    expect(page.locator("main")).to_contain_text("<img src=x onerror=document.title='hacked'>{{7*7}}\\x1b[31m\\u202e")


def test_text_of_users_does_nothing_in_the_data_of_the_graph(shown: Shown) -> None:
    deploy(shown.ledger, "evil/shop", Asset("s3://lake/evil-box", name=EVIL))
    page = shown.drawn("/graph?focus=s3://lake/evil-box")
    assert page.title().endswith("· Graph · assetflow")
    assert page.locator("main img, main script").count() == 1
    expect(page.locator("#graph")).to_have_attribute("data-nodes", re.compile("[1-9]"))


@pytest.mark.walk
def test_an_update_appears_by_itself(shown: Shown) -> None:
    listed = shown.drawn("/assets?search=landing")
    asset = shown.drawn("/asset?asset=landing")
    expect(asset.get_by_text("No events yet")).to_be_visible()
    update(shown.ledger, Asset("s3://lake/landing", name="landing"), timedelta(), extra={"fresh": 1})
    expect(asset.locator("#events")).to_contain_text('{"fresh": 1}')
    expect(listed.locator("tbody tr")).to_contain_text("ago")


def test_an_event_is_created_by_keyboard_alone(shown: Shown) -> None:
    deploy(shown.ledger, "by/keyboard", CUSTOMERS)
    page = shown.drawn("/assets")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    if page.locator("#troubles a").count():
        # The banner leads to what suffers.
        page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("s3://lake/customers")
    expect(page.locator("tbody tr")).to_have_count(1)
    link = page.get_by_role("link", name="customers", exact=True)
    # Past the filters, and the headings that sort the list.
    for _ in range(9):
        page.keyboard.press("Tab")
        if link.evaluate("each => each === document.activeElement"):
            break
    expect(link).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/asset"))
    expect(page.get_by_role("heading", name="Events")).to_be_visible()
    button = page.get_by_role("button", name="Create event")
    for _ in range(16):
        page.keyboard.press("Tab")
        if button.evaluate("each => each === document.activeElement"):
            break
    page.keyboard.press("Enter")
    for _ in range(6):
        if page.evaluate("document.activeElement.name") == "extra":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type('{"by": "hand"}')
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/events/"))
    expect(page.locator("main")).to_contain_text('"by": "hand"')
    expect(page.locator("#receipts")).to_contain_text("by/keyboard")


def test_the_theme_is_chosen_and_kept(shown: Shown) -> None:
    page = shown.drawn("/assets", "light")

    def back() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = back()
    page.get_by_role("button", name=re.compile("Theme")).click()
    page.get_by_role("button", name="Theme: light").click()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    dark = back()
    assert dark != light
    page.reload()
    assert back() == dark


def test_the_pages_ask_for_the_key_once(browser: Browser, tmp_path: Path) -> None:
    with running_site(tmp_path / "ledger.db", key="a-key") as (url, ledger):
        shown = Shown(browser, url, ledger)
        page = shown.page("/asset?asset=orders")
        page.get_by_label("Key").fill("no key")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_text("The API key is wrong.")).to_be_visible()
        page.get_by_label("Key").fill("a-key")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="orders")).to_be_visible()
        expect(page.locator("#graph")).to_have_attribute("data-nodes", re.compile(r"\d+"))
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Key")).to_be_visible()
        page.context.close()


def test_times_in_full_follow_the_switch_to_utc(shown: Shown) -> None:
    event = update(shown.ledger, ORDERS, timedelta(minutes=5))
    page = shown.drawn(f"/events/{event.id}", timezone_id="Asia/Tokyo")
    occurred = page.locator("time[data-at]").filter(has_text=":").first
    expect(occurred).not_to_contain_text("UTC")
    page.get_by_role("button", name="Times:").click()
    expect(occurred).to_contain_text("UTC")


def test_the_condition_pops_up_and_goes_by_keyboard(shown: Shown) -> None:
    deploy(shown.ledger, "pops/up", Asset("s3://lake/pops/1") & Asset("s3://lake/pops/2"))
    page = shown.drawn("/consumers?search=pops")
    button = page.get_by_role("button", name="waiting for 2 assets")
    button.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(button).to_be_focused()


def test_the_first_command_is_copied_in_one_click(browser: Browser, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db", now=START) as ledger:
        deploy(ledger, "report/nightly", ORDERS)
        with serving(create_site(Backend(ledger), Access(Keys("")))) as url:
            shown = Shown(browser, url, ledger)
            page = shown.drawn("/", permissions=["clipboard-read", "clipboard-write"])
            page.get_by_role("button", name="Copy").click()
            expect(page.get_by_role("button", name="Copied")).to_be_visible()
            assert page.evaluate("navigator.clipboard.readText()") == page.locator("#first-run").text_content()
            page.context.close()
            assert not shown.complaints


def test_the_palette_needs_no_click(shown: Shown) -> None:
    page = shown.drawn("/consumers")
    page.keyboard.press("Control+k")
    # What was updated last is shown before anything is typed: Enter, pressed at once, waits for what is found.
    expect(page.locator("#hits")).to_contain_text("Updated last")
    assert violations(page) == []
    page.keyboard.type("customers")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="customers")).to_be_visible()
