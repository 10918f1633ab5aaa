"""The drawing of a part of the graph: boxes, frames around open groups, and the lines between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain

from assetflow.core.graph.layers import Layers, Link, Point, Size, connected, layered
from assetflow.core.graph.lineage import Edge, GraphPart, Node, Picture, flows_after, folded, of_groups, whole
from assetflow.core.grouping import grouped

BOX: Size = (196, 42)
# Above the members of a group stands its name.
TITLE = 34
MARGIN = 16
# The lines of a larger picture are straight.
MOST_ROUTED = 400


@dataclass(frozen=True)
class Frame:
    """The frame around the members of an open group: its left upper corner, its size, and the boxes in it."""

    corner: Point
    size: Size
    members: Sequence[str]


@dataclass(frozen=True)
class Places:
    """Where all of a picture stands.

    Attributes:
        boxes: the middle of each box.
        frames: the frame of each open group.
        routes: the points at which each line turns, from its source to its target.
    """

    boxes: dict[str, Point] = field(default_factory=dict[str, Point])
    frames: dict[str, Frame] = field(default_factory=dict[str, Frame])
    routes: dict[Link, list[Point]] = field(default_factory=dict[Link, list[Point]])


def place(boxes: Iterable[str], links: Collection[Link], groups: Mapping[str, str]) -> Places:
    """Return where boxes, frames and lines stand. Parts that nothing links stand below each other.

    Parameters:
        groups: the group of each box that stands in a frame.
    """
    members = grouped((group, box) for box, group in sorted(groups.items()))
    routed = len(links) <= MOST_ROUTED
    frames = {f"group:{group}": _inside(inner, links, routed=routed) for group, inner in members.items()}
    unit_of = {box: f"group:{group}" for box, group in groups.items()}
    lines = {(a, b): pair for a, b in links if (pair := (unit_of.get(a, a), unit_of.get(b, b)))[0] != pair[1]}
    units = {unit_of.get(box, box) for box in boxes}
    sizes = {unit: _with_title(frames[unit].size) if unit in frames else BOX for unit in units}
    placed, top = Places(), 0
    for part in connected(units, lines.values()):
        inside = set(part)
        found = layered(
            {unit: sizes[unit] for unit in part},
            {line: pair for line, pair in lines.items() if pair[0] in inside},
            routed=routed,
        )
        _put(found, frames, unit_of, top, placed)
        top += found.size[1] + 2 * BOX[1]
    return placed


def _inside(members: Sequence[str], links: Collection[Link], *, routed: bool) -> Layers:
    """Return the drawing of the members of a frame. A line to the outside ends at the edge of the frame."""
    known = set(members)
    sizes = dict.fromkeys(members, BOX)
    lines: dict[Link, Link] = {}
    for source, target in links:
        if source in known or target in known:
            line = source if source in known else f"<{target}", target if target in known else f">{source}"
            lines[line] = line
    ports = dict.fromkeys((end for line in lines for end in line if end not in known), (0, 0))
    entries, exits = ({port for port in ports if port[0] == sign} for sign in "<>")
    return layered(sizes | ports, lines, first=entries, last=exits, routed=routed)


def _with_title(size: Size) -> Size:
    return size[0] + 2 * MARGIN, size[1] + TITLE + MARGIN


def _put(found: Layers, frames: Mapping[str, Layers], unit_of: Mapping[str, str], top: int, placed: Places) -> None:
    """Add a part of the picture, with all that stands in its frames."""
    corners: dict[str, Point] = {}
    for unit, (x, y) in found.places.items():
        if (inner := frames.get(unit)) is None:
            placed.boxes[unit] = (x, y + top)
            continue
        width, height = _with_title(inner.size)
        corner = (x - width // 2, y - height // 2 + top)
        placed.frames[unit] = Frame(corner, (width, height), [box for box in inner.places if box[0] not in "<>"])
        corners[unit] = (corner[0] + MARGIN, corner[1] + TITLE)
        placed.boxes.update({box: _moved(at, corners[unit]) for box, at in inner.places.items() if box[0] not in "<>"})
        placed.routes.update(
            {
                line: [_moved(at, corners[unit]) for at in route]
                for line, route in inner.routes.items()
                if line[0][0] != "<" and line[1][0] != ">"
            }
        )

    def within(box: str, port: str, line: Link) -> list[Point]:
        """Return the way of a line inside of a frame, with its port."""
        unit = unit_of.get(box)
        if unit is None:
            return []
        inner = frames[unit]
        way = [*inner.routes[line], inner.places[port]] if port[0] == ">" else [inner.places[port], *inner.routes[line]]
        return [_moved(at, corners[unit]) for at in way]

    for (source, target), route in found.routes.items():
        leave, enter = f">{source}", f"<{target}"
        middle = [(x, y + top) for x, y in route]
        placed.routes[source, target] = [
            *within(source, leave, (source, leave)),
            *middle,
            *within(target, enter, (enter, target)),
        ]


def _moved(at: Point, by: Point) -> Point:
    return at[0] + by[0], at[1] + by[1]


MOST = 2_500
# A whole graph with more nodes is folded by group at first.
READABLE = 60
REMEMBERED = 4


@dataclass(frozen=True)
class Drawing:
    """A part of the graph as boxes, and where they stand."""

    part: GraphPart
    picture: Picture
    places: Places


def draw(
    part: GraphPart,
    groups: Mapping[str, str],
    *,
    fold: bool,
    focus: Node | None = None,
    opened: Collection[str] = (),
    hubs: bool = True,
) -> Drawing:
    """Return a drawing of a part of the graph. An open group has a frame, if it is declared or was opened.

    Parameters:
        groups: the group of each asset that has one, by URI.
        fold: whether groups are folded that are not among `opened`.
        focus, opened, hubs: as `folded` takes them.
    """
    edges = (Edge(source, target, kind) for (source, target), kinds in part.relations.items() for kind in kinds)
    all_groups, declared = of_groups(edges, groups), {*groups.values()}
    picture = folded(part, all_groups if fold else {}, focus=focus, opened=opened, hubs=hubs)
    framed = {
        node.as_json(): group
        for node, group in all_groups.items()
        if node.as_json() in picture.boxes and group and (fold or group in declared)
    }
    sizes = Counter(framed.values())
    return Drawing(
        part,
        picture,
        place(picture.boxes, picture.links, {box: group for box, group in framed.items() if sizes[group] > 1}),
    )


class WholeGraph:
    """All assets and flows. It draws the same picture only once.

    Parameters:
        groups: the group of each asset that has one, by URI.
    """

    def __init__(self, edges: Sequence[Edge], groups: Mapping[str, str]) -> None:
        self._edges = edges
        self._groups = groups
        self.draw = lru_cache(maxsize=REMEMBERED)(self._draw)

    @cached_property
    def nodes(self) -> frozenset[Node]:
        return frozenset(chain.from_iterable(edge[:2] for edge in self._edges))

    def draw_only(self, nodes: Collection[Node]) -> Drawing:
        """Return a drawing of some nodes alone, with the lines between them and all groups open."""
        edges = [edge for edge in self._edges if edge.source in nodes and edge.target in nodes]
        return draw(whole(edges, nodes, MOST), self._groups, fold=False)

    def below(self, flow: str) -> Sequence[str]:
        """Return the flows that runs of a flow, `flow/deployment`, may start, however many steps further down."""
        onward = self._onward
        return flows_after(lambda ring: chain.from_iterable(onward.get(node, ()) for node in ring), [flow])[0]

    @cached_property
    def _onward(self) -> Mapping[Node, Sequence[Edge]]:
        return grouped((edge.source, edge) for edge in self._edges)

    def _draw(self, fold: bool | None, opened: tuple[str, ...], hubs: bool) -> Drawing:
        """Return a drawing.

        Parameters:
            fold: whether groups are folded; `None`: if there are more nodes than one can read.
        """
        part = whole(self._edges, (), MOST if fold is False else 10 * MOST)
        is_folded = len(part.levels) > READABLE if fold is None else fold
        return draw(part, self._groups, fold=is_folded, opened=opened, hubs=hubs)
