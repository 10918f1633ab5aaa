"""Lineage: the graph of assets and flows. It shows who makes an asset, who runs on it, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple
from uuid import UUID

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
    return [_way(node, start, came_from) for node in last]


def _way(last: Node, start: Node, came_from: Mapping[Node, Node]) -> tuple[str, ...]:
    way = [start, last]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return tuple(node.value for node in reversed(way))


def _inside(edge: Edge, nodes: Collection[Node]) -> bool:
    return edge.source in nodes and edge.target in nodes
