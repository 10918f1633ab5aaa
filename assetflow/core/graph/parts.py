"""Parts of the graph: the way up and down from a node, or the whole, with one relation for each pair of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from assetflow.core.graph.lineage import Edge, EdgeKind, EdgesOf, Node

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
    found: dict[Pair, set[EdgeKind]] = {}
    for source, target, kind in edges:
        found.setdefault((source, target), set()).add(kind)
    return {pair: frozenset(kinds) for pair, kinds in found.items()}


def whole(edges: Iterable[Edge], nodes: Iterable[Node], most: int) -> GraphPart:
    """Return the whole graph, of too many nodes the first."""
    relations = relations_of(edges)
    found = dict.fromkeys([*nodes, *(node for pair in relations for node in pair)], 0)
    shown = dict(list(found.items())[:most])
    return GraphPart(shown, _inside(relations, shown), truncated=len(shown) < len(found))


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
    return GraphPart(levels, _inside(relations, levels), frozenset(more), truncated)


def _walk(
    edges_of: EdgesOf, start: Node, way: Way, steps: int, most: int, levels: dict[Node, int], edges: dict[Edge, None]
) -> bool:
    """Add the nodes on one way; return True if not all of them fit."""
    ring = [start]
    flows = 0
    distance = abs(levels[start])
    while ring:
        found = [edge for edge in edges_of(ring) if _goes(edge, way, ring)]
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


def _goes(edge: Edge, way: Way, ring: list[Node]) -> bool:
    return (edge.source if way == "down" else edge.target) in set(ring)


def _inside(relations: Relations, nodes: Mapping[Node, int]) -> Relations:
    return {pair: kinds for pair, kinds in relations.items() if pair[0] in nodes and pair[1] in nodes}
