"""What a person sees and does in Prefect's own UI, with a real browser on the whole stack."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Error, Locator, Page, expect

from assetflow.stack.environment import StackEnvironment
from tests.environment.project_stack import assetflow
from tests.environment.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.browser, pytest.mark.prefect, pytest.mark.spark, pytest.mark.timeout(400)]

LOOK_AGAIN = 5_000


def press_run(page: Page, deployment: str) -> None:
    """Find a deployment by the name of its flow, and press Run."""
    page.goto("/deployments")
    until(lambda: is_found(page, deployment))
    page.get_by_role("link", name="shop").first.click()
    page.get_by_role("button", name="Run", exact=True).click()
    with page.expect_response(lambda answer: answer.url.endswith("/create_flow_run")) as answer:
        page.get_by_text("Quick run").click()
    assert answer.value.ok


def is_found(page: Page, deployment: str) -> bool:
    """Search, and return whether Prefect found it. A search that Prefect was too busy to answer shows none."""
    search = page.get_by_placeholder("Search deployments")
    search.clear()
    search.fill(deployment)
    try:
        page.get_by_text("1 Deployment", exact=True).wait_for(timeout=LOOK_AGAIN)
    except Error:
        return False
    return True


def shown_after_reload(page: Page, find: Callable[[Page], Locator]) -> Locator:
    """What is found, as soon as a reload of the page shows it."""

    def looked() -> Locator | None:
        page.reload()
        found = find(page)
        try:
            found.wait_for(timeout=LOOK_AGAIN)
        except Error:
            return None
        return found

    return until(looked)


def completed_run(page: Page, flow: str) -> Locator:
    """The card of a run of this flow that shows Completed."""
    return page.locator(".state-list-item").filter(has_text=flow).filter(has_text="Completed").first


def test_run_is_pressed_and_both_consumers_run(page: Page, stack: StackEnvironment) -> None:
    press_run(page, "orders-producer")
    page.goto("/runs")
    for flow in ("orders-consumer", "combined-consumer"):
        shown_after_reload(page, lambda page, flow=flow: completed_run(page, flow))
    completed_run(page, "combined-consumer").get_by_role("link", name="orders-customers-").click()
    page.get_by_text("Details", exact=True).click()
    created_by = "combined-consumer/shop runs when orders AND customers were updated"
    expect(page.get_by_text(created_by, exact=True)).to_be_visible()
    (decision,) = [each for each in assetflow(stack, "decisions", "ls") if each["consumer"].startswith("combined")]
    assert decision["flow_run_id"] in page.url


def test_the_automation_shows_the_condition_and_its_switch_pauses(page: Page, stack: StackEnvironment) -> None:
    page.goto("/automations")
    page.get_by_role("link", name="combined-consumer/shop runs when orders AND customers were updated").click()
    lake = (stack.home / "lake").as_uri()
    expect(page.get_by_text(f"Runs when {lake}/orders AND {lake}/customers were updated.")).to_be_visible()
    switch = page.get_by_role("switch")
    expect(switch).to_have_count(1)
    expect(switch).to_have_attribute("aria-checked", "true")
    for checked in ("false", "true"):
        until(lambda checked=checked: is_switched(switch, checked))
        until(lambda checked=checked: is_paused(stack) == (checked == "false"))


def is_switched(switch: Locator, checked: str) -> bool:
    """Press the switch, and return whether it went over. It stays where it was if Prefect is too busy to answer."""
    switch.click()
    try:
        expect(switch).to_have_attribute("aria-checked", checked)
    except AssertionError:
        return False
    return True


def is_paused(stack: StackEnvironment) -> bool:
    (consumer,) = [each for each in assetflow(stack, "consumers", "ls") if each["name"] == "combined-consumer/shop"]
    return bool(consumer["paused"])
