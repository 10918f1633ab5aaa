"""Lineage, the graph of assets and flows: who makes an asset, runs on it and reads it; and the parts of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from uuid import UUID

from assetflow.core.grouping import grouped, way_to
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token

NodeKind = Literal["asset", "alias", "name", "flow"]
NODE_KINDS: tuple[NodeKind, ...] = ("asset", "alias", "name", "flow")
EdgeKind = Literal["schedules", "produces", "reads", "links"]

# A flow starts others through what it makes.
SCHEDULING: frozenset[EdgeKind] = frozenset({"schedules", "produces", "links"})
DATA: frozenset[EdgeKind] = frozenset({"produces", "reads", "links"})


class Node(NamedTuple):
    """A node of the graph.

    Attributes:
        kind: `name` is a name in a schedule that belongs to no asset yet.
        value: the URI of an asset, the alias, the name, or a flow as `flow/deployment`.
    """

    kind: NodeKind
    value: str

    def as_json(self) -> str:
        return f"{self.kind}:{self.value}"

    @classmethod
    def from_json(cls, text: str) -> Node | None:
        """Return the node that `as_json` wrote, or `None` for another text."""
        kind, _, value = text.partition(":")
        return next((cls(known, value) for known in NODE_KINDS if known == kind and value), None)


class Edge(NamedTuple):
    """An edge of the graph, from cause to effect.

    Attributes:
        kind: `schedules`: the asset starts the flow. `produces`: the flow makes the asset. `reads`: from the asset to
            the flow that reads it. `links`: from the asset to an alias that it is linked to.
    """

    source: Node
    target: Node
    kind: EdgeKind


@dataclass(frozen=True)
class Learned:
    """What Prefect's events tell of a deployment: the assets that it makes and reads. Contract 2.9.

    Attributes:
        name: `flow/deployment`.
    """

    deployment_id: UUID
    name: str
    produces: tuple[Asset, ...] = ()
    reads: tuple[Asset, ...] = ()


@dataclass(frozen=True)
class Neighbourhood:
    """A part of the graph around a node.

    Attributes:
        distances: the nodes, each with the number of edges between it and the start.
        edges: the edges between these nodes.
        more: the nodes that have neighbours outside of this part.
        truncated: the part ends early, because it has as many nodes as allowed.
    """

    start: Node
    distances: Mapping[Node, int]
    edges: tuple[Edge, ...]
    more: frozenset[Node]
    truncated: bool


EdgesOf = Callable[[Collection[Node]], Iterable[Edge]]
"""Returns the edges that touch at least one of the given nodes."""


def edge_of(flow: str, token: Token, kind: EdgeKind, owners: Mapping[str, str]) -> Edge:
    """Return the edge between a flow and an asset or alias that it is scheduled on, produces or reads.

    Parameters:
        owners: each name with the URI that it belongs to.
    """
    asset, runs = node_of(token, owners), Node("flow", flow)
    return Edge(runs, asset, kind) if kind == "produces" else Edge(asset, runs, kind)


def node_of(token: Token, owners: Mapping[str, str]) -> Node:
    """Return the node for a token. The node for a name is the asset to which the name belongs."""
    if token.kind == "alias":
        return Node("alias", token.value)
    uri = token.value if token.kind == "uri" else owners.get(token.value)
    return Node("name", token.value) if uri is None else Node("asset", uri)


def neighbourhood(
    edges_of: EdgesOf,
    start: Node,
    depth: int,
    *,
    kinds: Collection[EdgeKind],
    most: int,
) -> Neighbourhood:
    """Return the nodes that are at most `depth` edges away from `start`, in either direction.

    Parameters:
        edges_of: called once for each step away from the start.
        kinds: the kinds of edges to follow.
        most: the largest number of nodes; the nearest are kept.
    """
    distances, ring, truncated = {start: 0}, [start], False
    edges: dict[Edge, None] = {}
    for distance in range(1, depth + 2):
        found = dict.fromkeys(edge for edge in edges_of(ring) if edge.kind in kinds)
        edges |= found
        # The last round only finds which of the outermost nodes have more neighbours.
        if distance > depth or truncated:
            break
        others = dict.fromkeys(node for edge in found for node in edge[:2] if node not in distances)
        room = most - len(distances)
        ring, truncated = list(others)[:room], len(others) > room
        distances |= dict.fromkeys(ring, distance)
        if not ring:
            break
    shown = tuple(edge for edge in edges if _inside(edge, distances))
    more = {node for edge in edges if not _inside(edge, distances) for node in edge[:2] if node in distances}
    return Neighbourhood(start, distances, shown, frozenset(more), truncated)


def flows_after(edges_of: EdgesOf, flows: Collection[str], most: int = 2_000) -> tuple[list[str], bool]:
    """Return the flows that runs of these flows may start: through their outlets, however many steps further down.

    Parameters:
        flows: each as `flow/deployment`; they are not among those returned.
        most: the search ends after this number of nodes.

    Returns:
        The flows, the nearest first, and True if the search ended early.
    """
    seen = {Node("flow", flow) for flow in flows}
    ring, found = list(seen), list[str]()
    while ring and len(seen) < most:
        onward = [edge for edge in edges_of(ring) if edge.kind != "reads" and edge.source in seen]
        ring = list(dict.fromkeys(edge.target for edge in onward if edge.target not in seen))
        seen.update(ring)
        found += [node.value for node in ring if node.kind == "flow"]
    return found, bool(ring)


def loops_through(edges_of: EdgesOf, flow: str, most: int = 2_000) -> list[tuple[str, ...]]:
    """Return the shortest loop from a flow back to itself through each asset or alias that starts it.

    Parameters:
        flow: `flow/deployment`.
        most: the search ends after this number of nodes.

    Returns:
        Each loop as the values of its nodes, with the flow at both ends.
    """
    start = Node("flow", flow)
    came_from: dict[Node, Node] = {}
    last: dict[Node, None] = {}
    ring = {start: None}
    while ring and len(came_from) < most:
        onward = [edge for edge in edges_of(ring) if edge.kind != "reads" and edge.source in ring]
        ring = {}
        for source, target, _ in onward:
            if target == start:
                last[source] = None
            elif target not in came_from:
                came_from[target] = source
                ring[target] = None
    return [tuple(each.value for each in (*way_to(node, start, came_from), start)) for node in last]


def _inside(edge: Edge, nodes: Collection[Node]) -> bool:
    return edge.source in nodes and edge.target in nodes


Way = Literal["up", "down"]
Pair = tuple[Node, Node]
Relations = Mapping[Pair, frozenset[EdgeKind]]


@dataclass(frozen=True)
class GraphPart:
    """A part of the graph.

    Attributes:
        levels: the nodes, each with its distance from the focus in edges: negative on the way up, 0 for the focus and
            in the whole graph.
        relations: the pairs of nodes with an edge, from cause to effect, each with the kinds of its edges.
        more: the nodes with neighbours that are not shown.
        truncated: the part ends early, because it has as many nodes as allowed.
    """

    levels: Mapping[Node, int]
    relations: Relations = field(default_factory=dict[Pair, frozenset[EdgeKind]])
    more: frozenset[Node] = frozenset()
    truncated: bool = False


def relations_of(edges: Iterable[Edge]) -> Relations:
    """Return each pair of nodes once, with the kinds of all edges between them."""
    found = grouped(((source, target), kind) for source, target, kind in edges)
    return {pair: frozenset(kinds) for pair, kinds in found.items()}


def whole(edges: Iterable[Edge], nodes: Iterable[Node], most: int) -> GraphPart:
    """Return the whole graph, of too many nodes the first."""
    relations = relations_of(edges)
    found = dict.fromkeys([*nodes, *(node for pair in relations for node in pair)], 0)
    shown = dict(list(found.items())[:most])
    return GraphPart(shown, _between(relations, shown), truncated=len(shown) < len(found))


def around(edges_of: EdgesOf, focus: Node, *, up: int, down: int, most: int, opened: Iterable[Node] = ()) -> GraphPart:
    """Return what leads to a node and what follows from it.

    A level is one flow: from an asset to the flows that it starts or that read it, and on to what they make. An alias
    is on the way, and costs nothing.

    Parameters:
        up, down: the number of levels on each way.
        most: the largest number of nodes; the nearest are kept.
        opened: nodes of the outermost level from which the way goes on by another level.
    """
    levels: dict[Node, int] = {focus: 0}
    edges: dict[Edge, None] = {}
    ways: list[tuple[Way, Node, int]] = [("up", focus, up), ("down", focus, down)]
    truncated = False
    for way, start, steps in ways:
        truncated |= _walk(edges_of, start, way, steps, most, levels, edges)
    for node in opened:
        if node in levels and node != focus:
            truncated |= _walk(edges_of, node, "up" if levels[node] < 0 else "down", 1, most, levels, edges)
    relations = relations_of(edges)
    outside = {node for pair in relations for node in pair if node not in levels}
    more = {node for pair in relations if outside & set(pair) for node in pair if node in levels}
    return GraphPart(levels, _between(relations, levels), frozenset(more), truncated)


def _walk(
    edges_of: EdgesOf, start: Node, way: Way, steps: int, most: int, levels: dict[Node, int], edges: dict[Edge, None]
) -> bool:
    """Add the nodes on one way; return True if not all of them fit."""
    ring = [start]
    flows = 0
    distance = abs(levels[start])
    while ring:
        inside = set(ring)
        found = [edge for edge in edges_of(ring) if (edge.source if way == "down" else edge.target) in inside]
        edges.update(dict.fromkeys(found))
        distance += 1
        following = dict.fromkeys(edge.target if way == "down" else edge.source for edge in found)
        if any(node.kind == "flow" for node in following):
            flows += 1
        if flows > steps:
            return False
        new = [node for node in following if node not in levels]
        room = max(0, most - len(levels))
        levels.update(dict.fromkeys(new[:room], distance if way == "down" else -distance))
        if len(new) > room:
            return True
        ring = new
    return False


def _between(relations: Relations, nodes: Mapping[Node, int]) -> Relations:
    return {pair: kinds for pair, kinds in relations.items() if pair[0] in nodes and pair[1] in nodes}


# A hub keeps this many of its ends; one more than that is not worth folding.
KEPT = 5
WORTH = 3


@dataclass(frozen=True)
class Box:
    """A node of a picture, which stands for one node of the graph or for several.

    Attributes:
        id: the id of its only node; `group:NAME` of a folded group, `more:WAY:NODE` of the folded ends of a hub.
        nodes: the nodes that it stands for.
    """

    id: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Picture:
    """A graph of boxes.

    Attributes:
        boxes: by id.
        links: the ids of two boxes with a relation, from cause to effect, with the kinds of its edges.
        levels: the distance of each box from the focus.
    """

    boxes: Mapping[str, Box]
    links: Mapping[tuple[str, str], frozenset[EdgeKind]]
    levels: Mapping[str, int] = field(default_factory=dict[str, int])


def folded(
    part: GraphPart,
    groups: Mapping[Node, str],
    *,
    focus: Node | None = None,
    opened: Collection[str] = (),
    hubs: bool = True,
) -> Picture:
    """Return the picture of a part of the graph.

    Parameters:
        groups: the group of each node that is folded into it.
        opened: the ids of boxes that are not folded.
        hubs: whether the many ends of a hub are folded.
    """
    box_of: dict[Node, str] = {}
    for node, group in groups.items():
        name = f"group:{group}"
        if node in part.levels and group and node != focus and name not in opened:
            box_of[node] = name
    for name, ends in (_ends_of_hubs(part.relations, focus, box_of) if hubs else {}).items():
        if name not in opened:
            box_of |= dict.fromkeys(ends, name)
    members = grouped((box_of.get(node, node.as_json()), node) for node in part.levels)
    links: defaultdict[tuple[str, str], set[EdgeKind]] = defaultdict(set)
    for (source, target), kinds in part.relations.items():
        pair = box_of.get(source, source.as_json()), box_of.get(target, target.as_json())
        if pair[0] != pair[1]:
            links[pair] |= kinds
    return Picture(
        {name: Box(name, tuple(nodes)) for name, nodes in members.items()},
        {pair: frozenset(kinds) for pair, kinds in links.items()},
        {name: min((part.levels[node] for node in nodes), key=abs) for name, nodes in members.items()},
    )


def _ends_of_hubs(relations: Relations, focus: Node | None, taken: Collection[Node]) -> dict[str, list[Node]]:
    """Return the nodes that hang on one node only, where these are many, by the id of the box that stands for them."""
    ways = [each for source, target in relations for each in ((source, "down", target), (target, "up", source))]
    neighbours = grouped((end, hub) for hub, _, end in ways)
    ends = {node for node, hubs in neighbours.items() if len(set(hubs)) == 1 and node != focus and node not in taken}
    found = grouped((f"more:{way}:{hub.as_json()}", end) for hub, way, end in ways if end in ends)
    return {name: ends[KEPT:] for name, ends in found.items() if len(ends) > KEPT + WORTH}


def of_groups(edges: Iterable[Edge], groups: Mapping[str, str]) -> dict[Node, str]:
    """Return the group of each node: that of the asset, or for a flow that of what it makes, else of what starts it.

    An asset without a group is in that of its folder.
    """
    found: dict[Node, str] = {}
    starts: dict[Node, str] = {}
    for source, target, kind in edges:
        for node in (source, target):
            if node.kind == "asset" and node not in found:
                found[node] = groups.get(node.value) or node.value.rpartition("/")[0]
        if kind == "produces":
            found.setdefault(source, found.get(target, ""))
        elif target.kind == "flow":
            starts.setdefault(target, found.get(source, ""))
    return starts | found


def tree(
    starts: Sequence[str], following: Mapping[str, Collection[str]], order: Callable[[str], tuple[int, int]]
) -> Iterator[tuple[str, int]]:
    """Yield each box with its depth, depth first: 0 for a start.

    Parameters:
        following: what follows directly from each box.
        order: returns the place of a box among those beside it.
    """
    seen: set[str] = set()
    stack = [(box, 0) for box in reversed(starts)]
    while stack:
        box, depth = stack.pop()
        if box not in seen:
            seen.add(box)
            yield box, depth
            stack += [(each, depth + 1) for each in sorted(following.get(box, ()), key=order, reverse=True)]
