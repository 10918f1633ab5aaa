"""What surrounds an asset: who makes it, who runs on it, who reads it, and what comes of that (a graph)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from assetflow.core.conditions import Token

NodeKind = Literal["asset", "alias", "name", "flow"]
EdgeKind = Literal["schedules", "produces", "reads", "links"]

SCHEDULING: frozenset[EdgeKind] = frozenset({"schedules", "links"})
DATA: frozenset[EdgeKind] = frozenset({"produces", "reads", "links"})


class Node(NamedTuple):
    """A node: an asset by URI, an alias, a name that belongs to no asset, a flow as `flow/deployment`."""

    kind: NodeKind
    value: str

    def as_json(self) -> str:
        return f"{self.kind}:{self.value}"


class Edge(NamedTuple):
    """An edge in the direction in which data or runs follow.

    `schedules`: an asset starts a flow; `produces`: a flow makes an asset; `reads`: an asset is read by a flow;
    `links`: an asset counts as an alias.
    """

    source: Node
    target: Node
    kind: EdgeKind

    def as_json(self) -> dict[str, object]:
        return {"source": self.source.as_json(), "target": self.target.as_json(), "kind": self.kind}


@dataclass(frozen=True)
class Neighbourhood:
    """A part of the graph around a node.

    Attributes:
        distances: the nodes, each with how many edges it is away.
        edges: those between the nodes.
        more: the nodes that have neighbours which are not shown.
        truncated: whether the limit of nodes was reached.
    """

    start: Node
    distances: Mapping[Node, int]
    edges: tuple[Edge, ...]
    more: frozenset[Node]
    truncated: bool

    def as_json(self) -> dict[str, object]:
        return {
            "start": self.start.as_json(),
            "nodes": [
                {
                    "id": node.as_json(),
                    "kind": node.kind,
                    "value": node.value,
                    "distance": distance,
                    "more": node in self.more,
                }
                for node, distance in self.distances.items()
            ],
            "edges": [edge.as_json() for edge in self.edges],
            "truncated": self.truncated,
        }


def edge_of(flow: str, token: Token, kind: EdgeKind, owners: Mapping[str, str]) -> Edge:
    """The edge between a flow and what it is scheduled on, produces or reads.

    Parameters:
        owners: name to the URI that it belongs to.
    """
    asset, runs = node_of(token, owners), Node("flow", flow)
    return Edge(runs, asset, kind) if kind == "produces" else Edge(asset, runs, kind)


def node_of(token: Token, owners: Mapping[str, str]) -> Node:
    """The node that a token means; a name is the asset that it belongs to."""
    if token.kind == "alias":
        return Node("alias", token.value)
    uri = token.value if token.kind == "uri" else owners.get(token.value)
    return Node("name", token.value) if uri is None else Node("asset", uri)


def neighbourhood(
    edges: Iterable[Edge], start: Node, depth: int, *, kinds: Collection[EdgeKind], most: int
) -> Neighbourhood:
    """What is at most `depth` edges away from a node, in either direction.

    Parameters:
        kinds: the kinds of edges that count.
        most: how many nodes at most; the nearest come first.
    """
    touching: defaultdict[Node, list[Edge]] = defaultdict(list)
    for edge in dict.fromkeys(edges):
        if edge.kind in kinds:
            touching[edge.source].append(edge)
            touching[edge.target].append(edge)
    distances, truncated = _nearest(touching, start, depth, most)
    shown = {edge: None for node in distances for edge in touching[node] if _inside(edge, distances)}
    more = {node for node in distances for edge in touching[node] if not _inside(edge, distances)}
    return Neighbourhood(start, distances, tuple(shown), frozenset(more), truncated)


def _nearest(touching: Mapping[Node, list[Edge]], start: Node, depth: int, most: int) -> tuple[dict[Node, int], bool]:
    distances = {start: 0}
    ring = [start]
    for distance in range(1, depth + 1):
        found = {other: None for node in ring for edge in touching.get(node, ()) for other in edge[:2]}
        ring = [node for node in found if node not in distances]
        room = most - len(distances)
        distances |= dict.fromkeys(ring[:room], distance)
        if len(ring) > room:
            return distances, True
    return distances, False


def _inside(edge: Edge, nodes: Collection[Node]) -> bool:
    return edge.source in nodes and edge.target in nodes
