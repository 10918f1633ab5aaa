"""The graph page: the whole of assets and flows, or what leads to one and what follows from it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup

from assetflow.api.backend import TheReader
from assetflow.api.paging import Text
from assetflow.core.words import count
from assetflow.errors import UnknownAsset
from assetflow.operations.graph import Graph, Placed, Wanted, graph_of
from assetflow.operations.lookup import find_node, near_assets
from assetflow.web.pages import ThePages, address, url

router = APIRouter()

# The list beside the picture; whoever needs more goes on from one of its nodes.
LISTED = 400
Levels = Annotated[int, Query(ge=0, le=50)]


@router.get("/graph")
def show_graph(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    focus: Text = "",
    up: Levels = 1,
    down: Levels = 3,
    fold: bool | None = None,
    opened: Annotated[list[Text], Query()] = [],  # noqa: B006
) -> Response:
    """Show the graph as a picture, and as a list for those who do not see it."""
    try:
        node = find_node(reader, focus) if focus else None
    except UnknownAsset:
        return pages.show(request, "asset_unknown.html", status=404, asked=focus, near=near_assets(reader, focus))
    graph = graph_of(reader, Wanted(node, up, down, fold, tuple(opened)))
    ways = dict(_ways(graph)) if node is not None else {"Groups and nodes": sorted(graph.boxes, key=_by_place)}
    return pages.show(
        request,
        "graph.html",
        graph=graph,
        data=_inside_page(graph),
        focus=focus,
        middle=next((each for each in graph.boxes if each.id == graph.focus), None),
        up=up,
        down=down,
        fold=fold,
        opened=opened,
        ways={name: found[:LISTED] for name, found in ways.items()},
        words={name: _words(found) for name, found in ways.items()},
        listed=LISTED,
        page_of=page_of,
        source=url("/api/v1/graph", focus=focus, up=up, down=down, fold=fold),
    )


def _inside_page(graph: Graph) -> Markup:
    """Return the graph as JSON inside of a page, so that the browser need not ask for it."""
    return Markup(json.dumps(graph.as_json(), ensure_ascii=False).replace("<", "\\u003c"))


def page_of(box: Placed) -> str:
    """Return the address of the page of a node; "" if it has none."""
    if box.kind in ("asset", "name"):
        return address(box.value)
    if box.kind == "flow" and box.state != "not scheduled":
        return url("/consumers", *box.value.split("/", 1))
    if box.kind == "group":
        return url("/assets", group=box.value)
    return ""


def _ways(graph: Graph) -> Iterator[tuple[str, list[Placed]]]:
    """Yield what follows and what leads to the focus, each in the order of a tree."""
    down: defaultdict[str, list[str]] = defaultdict(list)
    up: defaultdict[str, list[str]] = defaultdict(list)
    for source, target, _ in graph.links:
        down[source].append(target)
        up[target].append(source)
    boxes = {each.id: each for each in graph.boxes}
    for name, following, sign in (("Downstream", down, 1), ("Upstream", up, -1)):
        seen: dict[str, None] = {graph.focus: None}
        stack = sorted(following[graph.focus], reverse=True)
        found: list[Placed] = []
        while stack:
            box = stack.pop()
            if box not in seen and boxes[box].level * sign > 0:
                seen[box] = None
                found.append(boxes[box])
                stack += sorted(following[box], reverse=True)
        yield name, found


def _by_place(box: Placed) -> tuple[int, int]:
    return box.x, box.y


def _words(boxes: list[Placed]) -> str:
    flows = sum(each.flows for each in boxes)
    assets = sum(each.count - each.flows for each in boxes if each.kind not in ("alias", "name"))
    parts = ((flows, "flow"), (assets, "asset"))
    return ", ".join(count(number, word) for number, word in parts if number)
