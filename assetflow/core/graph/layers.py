"""A drawing in layers: boxes in columns, causes left of their effects, and the ways of the lines between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from assetflow.core.grouping import grouped

# The space between two columns. Lines change their height only there, so that none runs through a box.
GUTTER = 68
GAP = 16
# The height that a line takes within a column which it crosses.
LANE = 14
SWEEPS = 6

Link = tuple[str, str]
Point = tuple[int, int]
Size = tuple[int, int]
# The place of a line in a column: what shares its way, whether it leads on, and the number of the layer.
_Lane = tuple[tuple[str, str, bool], int]
_Cell = str | _Lane


@dataclass(frozen=True)
class Layers:
    """Where boxes stand, and which way lines go.

    Attributes:
        places: the middle of each box.
        routes: the points of each line at the edges of the columns that it crosses, from its source to its target;
            none for a line to the next column.
        size: the width and the height of the whole; its left upper corner is at 0, 0.
    """

    places: dict[str, Point] = field(default_factory=dict[str, Point])
    routes: dict[Link, list[Point]] = field(default_factory=dict[Link, list[Point]])
    size: Size = (0, 0)


def layered(
    sizes: Mapping[str, Size],
    lines: Mapping[Link, Link],
    *,
    first: Collection[str] = frozenset(),
    last: Collection[str] = frozenset(),
    routed: bool = True,
) -> Layers:
    """Return a drawing of boxes that hang together. The same graph always has the same drawing.

    A box stands to the right of everything that leads to it; links that close a circle do not count. Within a column,
    boxes and lines stand near their neighbours, so that few lines cross. The lines of a hub share their way.

    Parameters:
        sizes: the width and the height of each box.
        lines: each line, by its two ends, with the boxes in which these are.
        first, last: the boxes of the leftmost and of the rightmost column.
        routed: whether lines get a way around boxes. That takes long if there are thousands.
    """
    forward = _without_circles(sizes, {pair for pair in lines.values() if pair[0] != pair[1]})
    layers = _layers(forward)
    between = [layer for box, layer in layers.items() if box not in first and box not in last]
    layers |= dict.fromkeys(first, min(between) - 1) | dict.fromkeys(last, max(between) + 1)
    ways = _ways(lines, layers) if routed else {line: list[_Lane]() for line in lines}
    columns: defaultdict[int, dict[_Cell, int]] = defaultdict(dict)
    for box in forward:
        columns[layers[box]][box] = sizes[box][1] + GAP
    for lane in (lane for way in ways.values() for lane in way):
        columns[lane[1]][lane] = LANE
    heights = _heights(
        [columns[number] for number in sorted(columns)],
        _neighbours(path for line, way in ways.items() for path in pairwise([lines[line][0], *way, lines[line][1]])),
    )
    edges = _edges(sizes, layers)
    width = max(right for _, right in edges.values())
    top = min(heights[box] - sizes[box][1] / 2 for box in sizes)
    return Layers(
        {box: (round(sum(edges[layers[box]]) / 2), round(heights[box] - top)) for box in forward},
        {line: _points(way, edges, heights, top) for line, way in ways.items()},
        (width, round(max(heights[box] + sizes[box][1] / 2 for box in sizes) - top)),
    )


def _ways(lines: Mapping[Link, Link], layers: Mapping[str, int]) -> dict[Link, list[_Lane]]:
    """Return the lanes of each line: those of the end with more lines are shared."""
    ends = Counter(end for source, target in lines for end in (("from", source), ("to", target)))
    ways: dict[Link, list[_Lane]] = {}
    for (source, target), (begin, end) in sorted(lines.items()):
        start, stop = layers[begin], layers[end]
        hub = max(("from", source), ("to", target), key=lambda each: ends[each])
        leads_on = start < stop
        crossed = range(start + 1, stop) if leads_on else range(start, stop - 1, -1)
        ways[source, target] = [((hub[0], hub[1], leads_on), layer) for layer in crossed]
    return ways


def _points(
    way: Sequence[_Lane], edges: Mapping[int, tuple[int, int]], heights: Mapping[_Cell, float], top: float
) -> list[Point]:
    found: list[Point] = []
    for lane in way:
        (_, _, leads_on), layer = lane
        found += ((x, round(heights[lane] - top)) for x in (edges[layer] if leads_on else reversed(edges[layer])))
    return found


def _edges(sizes: Mapping[str, Size], layers: Mapping[str, int]) -> dict[int, tuple[int, int]]:
    """Return where each column begins and ends."""
    columns = grouped((layer, sizes[box][0]) for box, layer in layers.items())
    widths = {layer: max(found) for layer, found in columns.items()}
    edges: dict[int, tuple[int, int]] = {}
    left = 0
    for layer in sorted(widths):
        edges[layer] = (left, left + widths[layer])
        # Beside the edge of a frame, lines need less space.
        left += widths[layer] + (GUTTER if widths[layer] and widths.get(layer + 1) else GUTTER // 2)
    return edges


def connected(boxes: Iterable[str], links: Iterable[Link]) -> list[list[str]]:
    """Return the boxes that hang together, the largest parts first."""
    neighbours: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for source, target in links:
        neighbours[source][target] = neighbours[target][source] = None
    parts: list[list[str]] = []
    seen: set[str] = set()
    for box in sorted(boxes):
        if box in seen:
            continue
        part = [box]
        seen.add(box)
        for reached in part:
            found = [other for other in neighbours.get(reached, ()) if other not in seen]
            seen.update(found)
            part += found
        parts.append(sorted(part))
    return sorted(parts, key=lambda part: (-len(part), part[0]))


def _neighbours(links: Iterable[tuple[_Cell, _Cell]]) -> Mapping[_Cell, list[_Cell]]:
    return grouped(pair for one, other in dict.fromkeys(links) for pair in ((one, other), (other, one)))


def _without_circles(boxes: Iterable[str], links: Iterable[Link]) -> dict[str, list[str]]:
    """Return the targets of each box, effects after their causes, without the links that lead back."""
    targets: dict[str, list[str]] = {box: [] for box in sorted(boxes)}
    for source, target in sorted(links):
        targets[source].append(target)
    done: dict[str, None] = {}
    forward: dict[str, list[str]] = {box: [] for box in targets}
    led_to = {target for found in targets.values() for target in found}
    for root in sorted(targets, key=lambda box: (box in led_to, box)):
        if root not in done:
            _visit(root, targets, done, forward)
    return {box: forward[box] for box in reversed(done)}


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


def _heights(columns: Sequence[Mapping[_Cell, int]], neighbours: Mapping[_Cell, Sequence[_Cell]]) -> dict[_Cell, float]:
    """Return the height of the middle of each cell: near the middle of its neighbours, and beside the next cell."""
    column_of = {cell: number for number, column in enumerate(columns) for cell in column}
    heights: dict[_Cell, float] = {}
    for column in columns:
        low = 0.0
        for cell, size in column.items():
            heights[cell] = low + size / 2
            low += size
    for sweep in range(SWEEPS):
        rightwards = sweep % 2 == 0
        for column in columns if rightwards else reversed(columns):
            wanted: dict[_Cell, float] = {}
            for cell in column:
                side = [
                    heights[each]
                    for each in neighbours.get(cell, ())
                    if (column_of[each] < column_of[cell]) == rightwards and column_of[each] != column_of[cell]
                ]
                wanted[cell] = sum(side) / len(side) if side else heights[cell]
            heights.update(_apart(sorted(column, key=lambda cell: (wanted[cell], str(cell))), column, wanted))
    return heights


def _apart(order: Sequence[_Cell], sizes: Mapping[_Cell, int], wanted: Mapping[_Cell, float]) -> dict[_Cell, float]:
    """Return heights in the given order without overlaps, and in the middle as wanted."""
    placed: dict[_Cell, float] = {}
    low = float("-inf")
    for cell in order:
        placed[cell] = max(wanted[cell], low + sizes[cell] / 2)
        low = placed[cell] + sizes[cell] / 2
    moved = sum(placed[cell] - wanted[cell] for cell in order) / len(order)
    return {cell: height - moved for cell, height in placed.items()}
