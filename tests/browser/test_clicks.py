"""What people come for, in clicks from the start page."""

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from assetflow.api.requests import Backend
from assetflow.api.security import Access, Keys
from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from assetflow.ledger.records import ConsumerRecord
from assetflow.web import consumer, create_site
from tests.api.serving import serving
from tests.browser.shown import Clicks, Shown, violations
from tests.browser.site import START, update
from tests.cli.shop import ORDERS, deploy

pytestmark = [pytest.mark.long, pytest.mark.browser]


def test_what_if_is_two_clicks_from_the_start_and_one_on_the_asset(shown: Shown) -> None:
    update(shown.ledger, ORDERS, timedelta())
    clicks = Clicks(shown.drawn("/"))
    clicks.on("orders")
    clicks.on("Create event", "button")
    expect(clicks.page.get_by_role("dialog")).to_contain_text(re.compile("starts|waits", re.IGNORECASE))
    assert violations(clicks.page) == []
    assert clicks.count == 2


def test_a_queued_event_is_removed_in_three_clicks_and_a_reason(shown: Shown) -> None:
    deploy(shown.ledger, "early/one", ORDERS & Asset("s3://lake/gone", name="gone"))
    consumer = shown.ledger.reader.consumers.named("early/one")
    assert consumer is not None
    for each in shown.ledger.reader.consumers.all():
        if each.consumer.id != consumer.consumer.id:
            shown.ledger.writer.queues.remove(each.consumer.id, by="a test", why="one queue is enough", now=START)
    update(shown.ledger, ORDERS, timedelta())
    clicks = Clicks(shown.drawn("/"))
    clicks.on("early/one")
    clicks.on("Remove the update of orders from the queue")
    dialog = clicks.page.get_by_role("dialog")
    expect(dialog.get_by_label("Why")).to_be_focused()
    clicks.page.keyboard.type("sent twice")
    dialog.get_by_role("button", name="Remove", exact=True).click()
    clicks.count += 1
    main = clicks.page.locator("main")
    expect(main).to_contain_text("1 event was removed from the queue.")
    expect(main.get_by_role("heading", name="Queue")).to_have_count(0)
    expect(main).not_to_contain_text("no update came")
    assert clicks.count == 3


def switch_of(shown: Shown) -> Callable[..., Awaitable[None]]:
    """A switch that reaches the ledger at once, without Prefect."""

    async def switch(_: object, record: ConsumerRecord, *, paused: bool) -> None:
        shown.ledger.writer.consumers.switch(record.consumer.id, paused=paused, now=datetime.now(UTC))

    return switch


def test_ten_consumers_with_nothing_in_common_are_paused_in_twelve_clicks(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("abacus", "acorn", "agate", "alder", "amber", "apple", "arrow", "ash", "aspen", "atlas")
    for word in words:
        deploy(shown.ledger, f"{word}/shop", Asset("s3://lake/never", name="never"))
    monkeypatch.setattr(consumer, "switch", switch_of(shown))
    clicks = Clicks(shown.drawn("/consumers"))
    for word in words:
        clicks.on(f"Select {word}/shop", "checkbox")
    clicks.on("Pause", "button")
    dialog = clicks.page.get_by_role("dialog")
    expect(dialog).to_contain_text("atlas/shop")
    dialog.get_by_role("button", name="Pause", exact=True).click()
    clicks.count += 1
    expect(clicks.page.locator("main")).to_contain_text("Prefect was asked to switch 10 consumers.")
    assert clicks.count == 12
    paused = [each.consumer.name for each in shown.ledger.reader.consumers.all() if each.consumer.paused]
    assert {f"{word}/shop" for word in words} <= set(paused)


def test_the_first_command_is_copied_in_one_click(browser: Browser, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db", now=START) as ledger:
        deploy(ledger, "report/nightly", ORDERS)
        with serving(create_site(Backend(ledger), Access(Keys("")))) as url:
            shown = Shown(browser, url, ledger)
            page = shown.drawn("/", permissions=["clipboard-read", "clipboard-write"])
            Clicks(page).on("Copy", "button")
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
