"""The graph page: the whole of assets and flows, or what leads to one and what follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup

from assetflow.api.requests import Text, TheReader
from assetflow.core.graph.lineage import Way
from assetflow.core.values.words import Sign, count, sign_of
from assetflow.errors import UnknownAsset
from assetflow.operations.graph import UNWELL, Graph, Placed, Wanted, graph_of
from assetflow.operations.lookup import find_node, near_assets
from assetflow.web.pages import ThePages, address, url

router = APIRouter()

# How many nodes the list has until the reader asks for all.
LISTED = 250
# Around a node, so many boxes can be read.
LEGIBLE = 80
Levels = Annotated[int, Query(ge=0, le=50)]


@dataclass(frozen=True)
class GraphPlace:
    """The part of the graph that the page's address asks for.

    Attributes:
        focus: the node in the middle; "" for the whole graph.
        up, down, fold, opened: as in `Wanted`.
        all: the list has all nodes, however many.
    """

    focus: str = ""
    up: int = 1
    down: int = 3
    fold: bool | None = None
    opened: tuple[str, ...] = ()
    all: bool = False
    unwell: bool = False

    @property
    def address(self) -> str:
        fold = None if self.fold is None else str(self.fold).lower()
        levels = {"up": self.up, "down": self.down} if self.focus else {"unwell": "true" if self.unwell else ""}
        return url("/graph", focus=self.focus, **levels, fold=fold, opened=self.opened, all="true" if self.all else "")

    def around(self, node: str) -> str:
        """Return the address with another node in the middle."""
        return replace(self, focus=node, opened=()).address

    def with_open(self, box: str) -> str:
        """Return the address with one more box open."""
        return replace(self, opened=(*(each for each in self.opened if each != box), box)).address

    def without(self, box: str) -> str:
        """Return the address with a box folded again."""
        return replace(self, opened=tuple(each for each in self.opened if each != box)).address

    @property
    def with_all(self) -> str:
        """The address with all nodes in the list."""
        return replace(self, all=True).address


@dataclass(frozen=True)
class ListedWay:
    """A part of the list: a tree, as boxes with their depths, and how many there are."""

    title: str
    words: str
    rows: Sequence[tuple[Placed, int]]
    total: int


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
    all: bool = False,  # noqa: A002
    unwell: bool = False,
) -> Response:
    """Show the graph as a picture, and as a list for those who do not see it."""
    name = focus.strip()
    if name.strip("+") != name:
        # `+orders++`: a level up and two down.
        up, down = len(name) - len(name.lstrip("+")), len(name) - len(name.rstrip("+"))
    place = GraphPlace(name.strip("+"), up, down, fold, tuple(opened), all, unwell)
    try:
        node = find_node(reader, place.focus) if place.focus else None
    except UnknownAsset:
        near = near_assets(reader, place.focus)
        return pages.show(request, "graph.html", status=404, graph=None, middle=None, place=place, near=near)
    graph = graph_of(reader, Wanted(node, up, down, fold, place.opened, most=LEGIBLE, only_unwell=unwell))
    return pages.show(
        request,
        "graph.html",
        graph=graph,
        data=Markup(json.dumps(compact(graph), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")),
        place=place,
        middle=next((each for each in graph.nodes if each.id == graph.focus), None),
        ways=list(_ways(graph, None if all else LISTED)),
        names=_names(graph, place.opened),
        page_of=page_of,
    )


def compact(graph: Graph) -> dict[str, object]:
    """Return a graph for `graph.js`, without the names of fields: thousands of nodes would repeat them.

    A node is `[id, name, state, sign, at, x, y, more, entry]`, with 0 for a name that the id has, `at` in seconds since
    1970, or 0, and the word of an entry with the part of its assets that are updated. An edge is
    `[source, target, kinds, points]`: two places in `nodes`, the first letters of the kinds, and where its line turns.
    A frame is `[id, state, sign, x, y, width, height]`, with the place of its left upper corner.
    """
    places = {box.id: number for number, box in enumerate(graph.nodes)}
    return {
        "focus": graph.focus,
        "truncated": graph.truncated,
        "nodes": [
            (
                box.id,
                0 if box.name == box.value else box.name,
                _summary(box.states) or box.state,
                sign_of(box.state) or _worst(box.states),
                0 if box.at is None else int(box.at.timestamp()),
                box.x,
                box.y,
                int(box.more),
                0 if box.entry is None else (box.entry.word, box.entry.updated / box.entry.assets),
            )
            for box in graph.nodes
        ],
        "edges": [
            (places[link.source], places[link.target], "".join(kind[0] for kind in link.kinds), link.points)
            for link in graph.edges
        ],
        "frames": [
            (each.id, _summary(each.states), _worst(each.states), each.x, each.y, each.width, each.height)
            for each in graph.frames
        ],
    }


def _notable(states: Mapping[str, int]) -> list[str]:
    found = (state for state in states if sign_of(state) in UNWELL)
    return sorted(found, key=lambda state: (UNWELL.index(sign_of(state)), state))


def _summary(states: Mapping[str, int]) -> str:
    """Return how many members of a group are in a state that is not well: `1 failed · 12 paused`."""
    return " · ".join(f"{states[state]} {state}" for state in _notable(states))


def _worst(states: Mapping[str, int]) -> Sign:
    return sign_of(next(iter(_notable(states)), ""))


def page_of(box: Placed) -> str:
    """Return the address of the page of a node; "" if it has none."""
    if box.kind in ("asset", "name"):
        return address(box.value)
    if box.kind == "flow" and box.state != "not scheduled":
        return url("/consumers", *box.value.split("/", 1))
    if box.kind == "group":
        return url("/assets", group=box.value)
    return ""


def _ways(graph: Graph, most: int | None) -> Sequence[ListedWay]:
    titles: dict[str, Way] = {"Downstream": "down", "Upstream": "up"} if graph.focus else {"Everything": "down"}
    found = {title: list(graph.way(way)) for title, way in titles.items()}
    return [ListedWay(title, _words(rows), rows[:most], len(rows)) for title, rows in found.items()]


def _names(graph: Graph, opened: Sequence[str]) -> dict[str, str]:
    """Return what the opened boxes are called."""
    names = {box.id: box.name for box in graph.nodes}

    def name(box: str) -> str:
        kind, _, value = box.partition(":")
        if kind != "more":
            return names.get(box, value)
        _, _, hub = value.partition(":")
        return f"ends of {names.get(hub, hub.partition(':')[2])}"

    return {box: name(box) for box in opened}


def _words(rows: Sequence[tuple[Placed, int]]) -> str:
    flows = sum(box.flows for box, _ in rows)
    assets = sum(box.count - box.flows for box, _ in rows if box.kind not in ("alias", "name"))
    parts = ((flows, "flow"), (assets, "asset"))
    return ", ".join(count(number, word) for number, word in parts if number)
