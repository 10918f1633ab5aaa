"""The picture of the graph in the API, on the page and in the terminal."""

import json
import re

import pytest

from assetflow import Eager
from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from tests.cli.shop import NOON, ORDERS, deploy, update
from tests.ledger.making import A, B, C, deploy_maker
from tests.ledger.making import update as event_of
from tests.web.conftest import Site
from tests.web.html import read

REPORT = Asset("s3://lake/report", name="report", group="marts")
BOARD = Asset("s3://lake/board", name="board", group="marts")
D = Asset("s3://lake/d")
FOCUS = {"focus": "orders", "up": 0, "down": 3}


@pytest.fixture
def chain(ledger: Ledger) -> None:
    deploy(ledger, "ingest/shop", Asset("s3://lake/landing"), produces=(ORDERS,))
    deploy(ledger, "report/shop", ORDERS, produces=(REPORT,))
    deploy(ledger, "board/shop", REPORT, produces=(BOARD,))
    deploy(ledger, "wall/shop", BOARD)
    update(ledger, ORDERS, 0)


@pytest.mark.usefixtures("chain")
def test_flows_and_assets_have_names_groups_states_and_ages(site: Site) -> None:
    graph = site.get("/api/v1/graph", params=FOCUS).json()
    nodes = {node["name"]: node for node in graph["nodes"]}
    assert set(nodes) == {"orders", "report/shop", "report", "board/shop", "board", "wall/shop"}
    assert (nodes["orders"]["state"], nodes["orders"]["at"]) == ("updated", "2026-01-01T12:00:00Z")
    assert nodes["report/shop"]["state"] == "running"
    assert nodes["wall/shop"]["state"] == "never run"
    assert nodes["board"]["x"] > nodes["report"]["x"] > nodes["orders"]["x"]
    assert [node["more"] for node in graph["nodes"] if node["name"] == "wall/shop"] == [False]
    graph = site.get("/api/v1/graph", params={"focus": "report/shop", "up": 1, "down": 0}).json()
    near = {"s3://lake/landing", "ingest/shop", "orders", "report/shop", "report"}
    assert {node["name"] for node in graph["nodes"]} == near
    assert site.get("/api/v1/graph", params={"focus": "ordres"}).status_code == 404
    groups = {node["name"]: node["group"] for node in site.get("/api/v1/graph").json()["nodes"]}
    assert (groups["orders"], groups["s3://lake/landing"], groups["report/shop"]) == ("shop", None, None)


@pytest.mark.usefixtures("chain")
def test_only_what_is_not_well_is_shown_with_the_lines_between(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "paused/shop", REPORT)
    ledger.writer.consumers.switch(2, paused=True, now=NOON)
    page = site.page("/graph?unwell=true")
    assert "Assets and flows that are not well." in page.text
    listed = [each["data-node"] for each in page.named("li") if "data-node" in each]
    assert listed == ["flow:report/shop"]
    assert 'name="unwell" value="true" checked' in site.get("/graph?unwell=true").text


@pytest.mark.usefixtures("chain")
def test_the_whole_folds_by_group(site: Site) -> None:
    whole = site.get("/api/v1/graph").json()
    assert len(whole["nodes"]) == 8
    folded = site.get("/api/v1/graph", params={"fold": True}).json()
    states = {"shop": "1 asset, 1 flow", "marts": "2 assets, 3 flows", "s3://lake": "1 asset"}
    assert {node["name"]: node["state"] for node in folded["nodes"]} == states
    opened = site.get("/api/v1/graph", params={"fold": True, "opened": "group:marts"}).json()
    assert {"report", "board", "shop"} <= {node["name"] for node in opened["nodes"]}


@pytest.mark.usefixtures("chain")
def test_the_page_lists_the_same_says_what_it_does_not_know_and_where_it_is_cut(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = site.page("/graph?focus=orders&up=1&down=3")
    assert "Downstream 3 flows, 2 assets" in page.text
    assert "Upstream 1 flow, 1 asset" in page.text
    assert page.text.index("report/shop") < page.text.index("board/shop") < page.text.index("wall/shop")
    assert "No flow" not in site.page("/graph").text
    answer = site.get("/graph", params={"focus": "s3://lake/ordres", "up": 4})
    assert answer.status_code == 404
    page = read(answer.text)
    words = " ".join(page.text.split())
    assert "No asset or flow is called “s3://lake/ordres”. Similar names: s3://lake/orders" in words
    assert 'value="s3://lake/ordres"' in answer.text
    assert "<option selected>4</option>" in answer.text
    monkeypatch.setattr("assetflow.web.graph.LISTED", 3)
    page = site.get("/graph")
    assert "The first 3 of 8." in page.text
    assert len(listed(page.text)) == 3
    assert len(listed(site.get("/graph?all=true").text)) == 8


def listed(text: str) -> list[str]:
    """The ids of the nodes in the list, each after a dot for each level that it is below the first."""
    found: list[str] = []
    depth = -1
    for tag, node in re.findall(
        r'(<ul class="tree-list">|<ul>|</ul>)|<li data-node="([^"]+)"', text.partition("<h2>")[2]
    ):
        depth += tag.startswith("<ul")
        depth -= tag == "</ul>"
        found += ["." * depth + node] if node else []
    return found


@pytest.mark.usefixtures("chain")
def test_the_list_is_a_tree_of_the_boxes_of_the_picture(site: Site) -> None:
    text = site.get("/graph?focus=orders&up=1&down=1&opened=asset:s3://lake/report").text
    assert listed(text) == [
        "flow:report/shop",
        ".asset:s3://lake/report",
        "..flow:board/shop",
        "...asset:s3://lake/board",
        "flow:ingest/shop",
        ".asset:s3://lake/landing",
    ]
    data = json.loads(text.partition('id="graph-data">')[2].partition("</script>")[0])
    assert {node[0] for node in data["nodes"]} == {each.strip(".") for each in listed(text)} | {data["focus"]}
    # The way goes on from the board, and the report can be folded again; what was opened stays so.
    assert "opened=asset%3As3%3A%2F%2Flake%2Freport&amp;opened=asset%3As3%3A%2F%2Flake%2Fboard" in text
    assert 'aria-label="Fold report again"' in text
    assert [each.count(".") for each in listed(site.get("/graph").text)] == list(range(8))


def test_the_graph_says_what_is_out_of_date(site: Site, ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(), [B], [A], "make-b/x", code_version="1")
    deploy_maker(ledger, Eager(), [C], [B], "make-c/x")
    deploy_maker(ledger, Eager(), [D], [C], "make-d/x")
    for asset, version in ((A, "1"), (B, "1"), (C, "1"), (A, "2")):
        ledger.writer.events.record([event_of(asset, data_version=version)], NOON)
    nodes = {node["value"]: node for node in site.get("/api/v1/graph").json()["nodes"]}
    assert [nodes[asset.uri]["state"] for asset in (A, B, C, D)] == ["updated", "stale", "outdated", "missing"]
    lineage = site.get("/api/v1/lineage", params={"focus": B.uri}).json()
    assert {node["value"]: node["state"] for node in lineage["nodes"]}[C.uri] == "outdated"
    assert 'sign-stale" aria-hidden="true"></span>stale' in site.get("/graph").text
