"""What people come for, in clicks from the start page."""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from assetflow.api.requests import Backend
from assetflow.api.security import Access, Keys
from assetflow.core.explain import NotStarted
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.ledger import Ledger
from assetflow.ledger.records import ConsumerRecord
from assetflow.web import consumer, create_site
from assetflow.web.live import LateRun, LateRuns
from tests.api.serving import serving
from tests.browser.clicks import Clicks
from tests.browser.shown import Shown, violations
from tests.browser.site import START, update
from tests.cli.shop import ORDERS, deploy

pytestmark = [pytest.mark.long, pytest.mark.browser]


def test_why_something_waits_is_seen_without_a_click(shown: Shown) -> None:
    deploy(shown.ledger, "lonely/one", ORDERS & Asset("s3://lake/absent", name="absent"))
    update(shown.ledger, ORDERS, timedelta())
    page = shown.drawn("/")
    expect(page.get_by_role("region", name="Waiting longest")).to_contain_text("still needs absent")


def test_why_something_ran_is_one_click(shown: Shown) -> None:
    clicks = Clicks(shown.drawn("/"))
    clicks.on("why")
    expect(clicks.page.locator("main")).to_contain_text("because its condition held")
    assert clicks.count == 1


def test_all_assets_that_are_too_old_are_one_click(shown: Shown) -> None:
    policy = FreshnessPolicy(timedelta(hours=1))
    late = tuple(Asset(f"s3://late/{number}", name=f"late-{number}", freshness=policy) for number in range(6))
    deploy(shown.ledger, "make/late", ORDERS, produces=late)
    for asset in late:
        update(shown.ledger, asset, timedelta(hours=20))
    shown.ledger.writer.clock.run(START, START)
    clicks = Clicks(shown.drawn("/"))
    # How many are shown above depends on what else needs a person.
    clicks.on(re.compile(r"^\d more$"))
    expect(clicks.page.locator("tbody tr")).to_have_count(6)
    assert clicks.count == 1


def test_what_if_is_two_clicks_from_the_start_and_one_on_the_asset(shown: Shown) -> None:
    update(shown.ledger, ORDERS, timedelta())
    clicks = Clicks(shown.drawn("/"))
    clicks.on("orders")
    clicks.on("Create event", "button")
    expect(clicks.page.get_by_role("dialog")).to_contain_text(re.compile("starts|waits", re.IGNORECASE))
    assert violations(clicks.page) == []
    assert clicks.count == 2


def test_what_if_is_one_click_from_the_search(shown: Shown) -> None:
    update(shown.ledger, ORDERS, timedelta())
    page = shown.drawn("/")
    page.keyboard.press("Control+k")
    page.keyboard.type("orders")
    clicks = Clicks(page)
    clicks.on("what if orders is updated")
    expect(page.get_by_role("dialog")).to_contain_text(re.compile("starts|waits", re.IGNORECASE))
    assert clicks.count == 1


def test_flows_three_levels_down_are_two_clicks(shown: Shown) -> None:
    made = [Asset(f"s3://deep/{number}", name=f"deep{number}") for number in range(4)]
    for number in range(3):
        deploy(shown.ledger, f"deep/{number}", made[number], produces=(made[number + 1],))
    update(shown.ledger, made[0], timedelta())
    clicks = Clicks(shown.drawn("/"))
    clicks.on("deep0")
    clicks.on("Up and down, as a list too")
    below = clicks.page.get_by_role("navigation", name="The same as a list")
    expect(below).to_contain_text("Downstream 3 flows")
    expect(below).to_contain_text("deep/2")
    assert clicks.count == 2


def test_what_a_resume_would_start_is_one_click(shown: Shown) -> None:
    consumer = deploy(shown.ledger, "halted/one", ORDERS, while_paused="keep")
    shown.ledger.writer.consumers.switch(consumer.id, paused=True, now=START)
    update(shown.ledger, ORDERS, timedelta())
    clicks = Clicks(shown.drawn("/"))
    clicks.on("halted/one")
    expect(clicks.page.locator("#if-resumed")).to_contain_text("with 1 update")
    assert clicks.count == 1


def test_an_event_with_a_key_is_three_clicks(shown: Shown) -> None:
    update(shown.ledger, ORDERS, timedelta())
    clicks = Clicks(shown.drawn("/"))
    clicks.on("orders")
    clicks.on("Create event", "button")
    dialog = clicks.page.get_by_role("dialog")
    dialog.get_by_label("Partition key").fill("2026-01-01")
    # Whether a consumer takes updates with a key is told before it is sent.
    expect(dialog).to_contain_text("takes no updates with a partition key")
    dialog.get_by_role("button", name="Create event").click()
    clicks.count += 1
    expect(clicks.page.get_by_role("heading", name="What consumers did with it")).to_be_visible()
    expect(clicks.page.locator("main")).to_contain_text("2026-01-01")
    assert clicks.count == 3


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


def test_a_consumer_is_paused_and_resumed_in_three_clicks(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(shown.ledger, "handy/one", ORDERS & Asset("s3://lake/never", name="never"))

    monkeypatch.setattr(consumer, "switch", switch_of(shown))
    clicks = Clicks(shown.drawn("/consumers?search=handy"))
    clicks.on("handy/one")
    clicks.on("Pause", "button")
    expect(clicks.page.get_by_role("button", name="Resume")).to_be_visible()
    expect(clicks.page.locator("main")).to_contain_text("is paused")
    clicks.on("Resume", "button")
    expect(clicks.page.get_by_role("button", name="Pause")).to_be_visible()
    assert clicks.count == 3


def test_late_runs_stay_in_the_overview_when_something_happens(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(shown.ledger, "pooled/one", ORDERS)
    update(shown.ledger, ORDERS, timedelta())
    (made, *_) = [each for each in shown.ledger.reader.decisions.find() if each.consumer_name == "pooled/one"]
    asked: list[LateRun] = []

    async def look(_: LateRuns) -> Sequence[LateRun]:
        asked[:] = [(made, NotStarted(START, pool="laptop"))]
        return asked

    monkeypatch.setattr(LateRuns, "look", look)
    monkeypatch.setattr(LateRuns, "shown", lambda _: tuple(asked))
    page = shown.drawn("/")
    late = page.locator("#late-runs")
    expect(late).to_contain_text("pooled/one")
    for number in range(2):
        asset = Asset(f"s3://lake/news-{number}", name=f"news-{number}")
        # Now: other tests may have made many decisions at the beginning.
        update(shown.ledger, asset, START - datetime.now(UTC))
        expect(page.get_by_role("region", name="Just happened")).to_contain_text(asset.name or "")
        expect(late).to_contain_text("pooled/one")


def test_the_palette_needs_no_click(shown: Shown) -> None:
    page = shown.drawn("/consumers")
    page.keyboard.press("Control+k")
    # What was updated last is shown before anything is typed: Enter, pressed at once, waits for what is found.
    expect(page.locator("#hits")).to_contain_text("Updated last")
    assert violations(page) == []
    page.keyboard.type("customers")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="customers")).to_be_visible()


def test_the_palette_leads_to_the_search_if_nothing_is_found(shown: Shown) -> None:
    page = shown.drawn("/consumers")
    page.keyboard.press("Control+k")
    page.keyboard.type("zzzz")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/search\?q=zzzz$"))


@pytest.mark.parametrize(
    "path",
    ["/", "/graph", "/graph?focus=orders", "/search?q=orders", "/backfills", "/backfills/new?asset=orders&start=2026"],
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_new_pages_are_accessible_and_fit(shown: Shown, path: str, theme: str) -> None:
    page = shown.drawn(path, theme)  # pyright: ignore[reportArgumentType]
    assert violations(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_overview_fits_on_one_screen(shown: Shown) -> None:
    page = shown.drawn("/", width=1440)
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight") <= 900
