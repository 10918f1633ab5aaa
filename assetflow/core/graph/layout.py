"""Where the boxes of a picture stand: in layers from causes on the left to effects on the right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from assetflow.core.graph.lineage import Edge, Node, flows_after
from assetflow.core.graph.parts import GraphPart, Picture, folded, of_groups, whole

COLUMN = 236
ROW = 58
SWEEPS = 4

Link = tuple[str, str]


def positions(boxes: Iterable[str], links: Collection[Link]) -> dict[str, tuple[int, int]]:
    """Return the middle of each box. The same graph always has the same positions.

    A box stands to the right of everything that leads to it. Links that close a circle do not count. Within a column,
    boxes stand near their neighbours, so that few lines cross. Parts that nothing links stand below each other.
    """
    neighbours = _neighbours(links)
    parts = _connected(sorted(boxes), neighbours)
    part_of = {box: number for number, part in enumerate(parts) for box in part}
    links_of: defaultdict[int, list[Link]] = defaultdict(list)
    for link in links:
        links_of[part_of[link[0]]].append(link)
    placed: dict[str, tuple[int, int]] = {}
    top = 0
    for number, part in enumerate(parts):
        found = _part_positions(part, links_of[number], neighbours)
        first, last = min(y for _, y in found.values()), max(y for _, y in found.values())
        placed |= {box: (x, y - first + top) for box, (x, y) in found.items()}
        top += last - first + 2 * ROW
    return placed


def _connected(boxes: Sequence[str], neighbours: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the boxes that hang together, the largest parts first."""
    parts: list[list[str]] = []
    seen: set[str] = set()
    for box in boxes:
        if box in seen:
            continue
        part, waiting = [box], [box]
        seen.add(box)
        while waiting:
            for other in neighbours.get(waiting.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    part.append(other)
                    waiting.append(other)
        parts.append(sorted(part))
    return sorted(parts, key=lambda part: (-len(part), part[0]))


def _part_positions(
    boxes: Sequence[str], links: Collection[Link], neighbours: Mapping[str, Sequence[str]]
) -> dict[str, tuple[int, int]]:
    forward = _without_circles(boxes, links)
    layers = _layers(forward)
    columns: defaultdict[int, list[str]] = defaultdict(list)
    for box in forward:
        columns[layers[box]].append(box)
    heights = _heights([columns[number] for number in sorted(columns)], neighbours, layers)
    return {box: (layers[box] * COLUMN, round(heights[box])) for box in forward}


def _neighbours(links: Iterable[Link]) -> Mapping[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for source, target in links:
        found[source].append(target)
        found[target].append(source)
    return found


def _without_circles(boxes: Sequence[str], links: Iterable[Link]) -> dict[str, list[str]]:
    """Return the targets of each box, effects after their causes, without the links that lead back."""
    targets: dict[str, list[str]] = {box: [] for box in boxes}
    for source, target in sorted(links):
        targets[source].append(target)
    done: dict[str, None] = {}
    forward: dict[str, list[str]] = {box: [] for box in boxes}
    for root in _roots_first(boxes, targets):
        if root not in done:
            _visit(root, targets, done, forward)
    return {box: forward[box] for box in reversed(done)}


def _roots_first(boxes: Sequence[str], targets: Mapping[str, Sequence[str]]) -> list[str]:
    led_to = {target for found in targets.values() for target in found}
    return sorted(boxes, key=lambda box: (box in led_to, box))


def _visit(
    root: str, targets: Mapping[str, Sequence[str]], done: dict[str, None], forward: Mapping[str, list[str]]
) -> None:
    """Go through everything that follows from a box, depth first; `done` gets effects before their causes."""
    path = {root}
    stack = [(root, iter(targets[root]))]
    while stack:
        box, left = stack[-1]
        target = next(left, None)
        if target is None:
            stack.pop()
            path.discard(box)
            done[box] = None
        elif target not in path:
            forward[box].append(target)
            if target not in done:
                path.add(target)
                stack.append((target, iter(targets[target])))


def _layers(forward: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the length of the longest way to each box; causes stand directly before their first effect."""
    layers = dict.fromkeys(forward, 0)
    for box, targets in forward.items():
        for target in targets:
            layers[target] = max(layers[target], layers[box] + 1)
    sources = set(forward) - {target for targets in forward.values() for target in targets}
    for box in sources:
        if forward[box]:
            layers[box] = min(layers[target] for target in forward[box]) - 1
    return layers


def _heights(
    columns: Sequence[list[str]], neighbours: Mapping[str, Sequence[str]], layers: Mapping[str, int]
) -> dict[str, float]:
    """Return the height of each box: near the middle of its neighbours, and a row away from the next."""
    heights = {box: float(ROW * place) for column in columns for place, box in enumerate(column)}
    for sweep in range(SWEEPS):
        rightwards = sweep % 2 == 0
        for column in columns if rightwards else reversed(columns):
            wanted: dict[str, float] = {}
            for box in column:
                side = [
                    heights[each]
                    for each in neighbours.get(box, ())
                    if (layers[each] < layers[box]) == rightwards and layers[each] != layers[box]
                ]
                wanted[box] = sum(side) / len(side) if side else heights[box]
            heights.update(_apart(sorted(column, key=lambda box: (wanted[box], box)), wanted))
    return heights


def _apart(column: Sequence[str], wanted: Mapping[str, float]) -> dict[str, float]:
    """Return heights in the given order, at least a row apart, and in the middle as wanted."""
    placed: dict[str, float] = {}
    low = float("-inf")
    for box in column:
        low = max(wanted[box], low + ROW)
        placed[box] = low
    moved = sum(placed[box] - wanted[box] for box in column) / len(column)
    return {box: height - moved for box, height in placed.items()}


MOST = 2_500
# A whole graph with more nodes is folded by group at first.
READABLE = 60
REMEMBERED = 4


@dataclass(frozen=True)
class Drawing:
    """A part of the graph as boxes, each with the place of its middle."""

    part: GraphPart
    picture: Picture
    places: Mapping[str, tuple[int, int]]


def draw(
    part: GraphPart,
    groups: Mapping[Node, str],
    *,
    focus: Node | None = None,
    opened: Collection[str] = (),
    hubs: bool = True,
) -> Drawing:
    """Return a drawing of a part of the graph; `folded` says what the parameters mean."""
    picture = folded(part, groups, focus=focus, opened=opened, hubs=hubs)
    return Drawing(part, picture, positions(picture.boxes, picture.links))


class WholeGraph:
    """All assets and flows. It draws the same picture only once.

    Parameters:
        groups: the group of each asset that has one, by URI.
    """

    def __init__(self, edges: Sequence[Edge], groups: Mapping[str, str]) -> None:
        self._edges = edges
        self._groups = groups
        self.draw = lru_cache(maxsize=REMEMBERED)(self._draw)

    def below(self, flow: str) -> Sequence[str]:
        """Return the flows that runs of a flow, `flow/deployment`, may start, however many steps further down."""
        onward = self._onward
        return flows_after(lambda ring: chain.from_iterable(onward.get(node, ()) for node in ring), [flow])[0]

    @cached_property
    def _onward(self) -> Mapping[Node, Sequence[Edge]]:
        found: defaultdict[Node, list[Edge]] = defaultdict(list)
        for edge in self._edges:
            found[edge.source].append(edge)
        return found

    def _draw(self, fold: bool | None, opened: tuple[str, ...], hubs: bool) -> Drawing:
        """Return a drawing.

        Parameters:
            fold: whether groups are folded; `None`: if there are more nodes than one can read.
        """
        part = whole(self._edges, (), MOST if fold is False else 10 * MOST)
        is_folded = len(part.levels) > READABLE if fold is None else fold
        return draw(part, of_groups(self._edges, self._groups) if is_folded else {}, opened=opened, hubs=hubs)
