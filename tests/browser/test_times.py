"""Ages say their exact time to those who do not hover: by keyboard and by touch."""

from datetime import timedelta

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.shown import Shown, violations
from tests.browser.site import update
from tests.cli.shop import ORDERS

pytestmark = [pytest.mark.long, pytest.mark.browser]


def exact(time: Locator) -> str:
    """Return what stands beside an age."""
    return time.evaluate("time => getComputedStyle(time, '::after').content")


def test_the_focus_on_a_row_shows_its_exact_time(shown: Shown) -> None:
    update(shown.ledger, ORDERS, timedelta(minutes=5))
    page = shown.drawn("/asset?asset=orders")
    row = page.locator("#events tbody tr").first
    time = row.locator("time").first
    assert exact(time) == "none"
    row.get_by_role("link").first.focus()
    assert "UTC" in exact(time)
    assert violations(page) == []


def test_a_press_on_an_age_shows_its_exact_time_and_the_tab_key_reaches_the_facts(shown: Shown) -> None:
    page = shown.drawn("/asset?asset=orders")
    seen = page.locator(".facts time[data-ago]").first
    seen.click()
    assert "UTC" in exact(seen)
    seen.click()
    page.locator("h1").click()
    assert exact(seen) == "none"
    expect(seen).to_have_attribute("tabindex", "0")


def test_a_press_on_an_age_opens_no_row(shown: Shown) -> None:
    update(shown.ledger, ORDERS, timedelta(minutes=5))
    page = shown.drawn("/activity?show=all")
    time = page.locator(".happened > li > time").first
    time.click()
    assert page.url.endswith("/activity?show=all")
    assert "UTC" in exact(time)


def test_times_in_full_follow_the_switch_to_utc(shown: Shown) -> None:
    event = update(shown.ledger, ORDERS, timedelta(minutes=5))
    page = shown.drawn(f"/events/{event.id}", timezone_id="Asia/Tokyo")
    occurred = page.locator("time[data-at]").filter(has_text=":").first
    expect(occurred).not_to_contain_text("UTC")
    page.get_by_role("button", name="Times:").click()
    expect(occurred).to_contain_text("UTC")
