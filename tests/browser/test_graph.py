"""The graph in a browser: picture, list and address agree, what is opened stays in its place, a large one is quick."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from assetflow import Eager
from assetflow.core.values.assets import Asset
from tests.browser.shown import Shown
from tests.browser.site import START, update
from tests.cli.shop import deploy
from tests.ledger.making import deploy_maker

pytestmark = [pytest.mark.long, pytest.mark.browser]

GRAPH = "document.getElementById('graph')._cyreg.cy"
Places = dict[str, list[float]]


def places(page: Page) -> Places:
    """Where each node stands."""
    return page.evaluate(
        f'Object.fromEntries({GRAPH}.nodes(\'[kind != "frame"][kind != "entry"]\')'
        ".map((n) => [n.id(), [n.position('x'), n.position('y')]]))"
    )


def in_window(page: Page, node: str) -> list[int]:
    """Where a node, or the first box of a frame, is in the window."""
    at = page.evaluate(f"(({{x, y}}) => [x, y])({GRAPH}.getElementById('{node}').renderedPosition())")
    return [round(each) for each in at]


def press(page: Page, node: str, right: float = 0) -> None:
    """Press a node in the picture, so far to the right of its middle in its own measure."""
    at = page.evaluate(f"""((n) => {{
        const [at, zoom, box] = [n.renderedPosition(), {GRAPH}.zoom(), {GRAPH}.container().getBoundingClientRect()];
        return [box.x + at.x + {right} * zoom, box.y + at.y];
    }})({GRAPH}.getElementById('{node}'))""")
    page.mouse.click(*at)


def listed(page: Page) -> set[str]:
    return set(page.locator("#graph-list li[data-node]").evaluate_all("all => all.map((each) => each.dataset.node)"))


def a_hub(shown: Shown, name: str) -> str:
    hub = Asset(f"s3://{name}/hub", name=f"{name} hub", group=name)
    for number in range(22):
        deploy(shown.ledger, f"{name}/{number:02}", hub)
    return hub.uri


def test_what_is_opened_in_the_picture_is_in_the_list_and_the_address(shown: Shown) -> None:
    hub = a_hub(shown, "pressed")
    page = shown.drawn(f"/graph?focus={hub}")
    # The asset, five of its flows, and the rest in one box.
    expect(page.locator("#graph")).to_have_attribute("data-nodes", "7")
    before, stays = places(page), in_window(page, f"asset:{hub}")
    press(page, f"more:down:asset:{hub}")
    expect(page.locator("#graph")).to_have_attribute("data-nodes", "23")
    after = places(page)
    assert in_window(page, f"asset:{hub}") == stays
    assert listed(page) | {f"asset:{hub}"} == set(after)
    expect(page).to_have_url(re.compile(r"opened=more%3Adown"))
    assert len({(x // 190, y // 50) for x, y in after.values()}) == 23, "no two boxes stand at one place"
    page.get_by_role("link", name="Fold ends of pressed hub again").click()
    expect(page.locator("#graph")).to_have_attribute("data-nodes", "7")
    assert places(page) == before
    page.go_back()
    expect(page.locator("#graph")).to_have_attribute("data-nodes", "23")
    expect(page.locator("#graph-list")).to_contain_text("pressed/21")
    page.reload()
    expect(page.locator("#graph")).to_have_attribute("data-nodes", "23")


def test_states_change_by_themselves_and_nodes_stay(shown: Shown) -> None:
    raw, core = Asset("s3://live/raw", name="live raw"), Asset("s3://live/core", name="live core")
    deploy_maker(shown.ledger, Eager(), [core], [raw], "live/core", at=START)
    page = shown.drawn("/graph?focus=live raw")
    before = places(page)

    def sign(node: str) -> Any:
        return page.evaluate(f"{GRAPH}.getElementById('{node}').data('sign')")

    assert sign("asset:s3://live/core") == "missing"
    assert page.evaluate(f"{GRAPH}.edges('.stale').length") == 1
    for asset in (raw, core):
        update(shown.ledger, asset, START - datetime.now(UTC))
    expect(page.locator("#graph-list")).to_contain_text("fresh", timeout=15_000)
    assert sign("asset:s3://live/core") == "good"
    assert page.evaluate(f"{GRAPH}.edges('.stale').length") == 0
    assert places(page) == before
