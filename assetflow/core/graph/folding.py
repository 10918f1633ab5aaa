"""Fold parts of a graph: the members of a group into one node, and the many ends of a hub into "+17"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from assetflow.core.graph.lineage import Edge, EdgeKind, Node
from assetflow.core.graph.parts import GraphPart, Relations

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
    members: defaultdict[str, list[Node]] = defaultdict(list)
    for node in part.levels:
        members[box_of.get(node, node.as_json())].append(node)
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
    neighbours: defaultdict[Node, set[Node]] = defaultdict(set)
    for source, target in relations:
        neighbours[source].add(target)
        neighbours[target].add(source)
    found: defaultdict[str, list[Node]] = defaultdict(list)
    for source, target in relations:
        for end, hub, way in ((target, source, "down"), (source, target, "up")):
            if len(neighbours[end]) == 1 and end != focus and end not in taken:
                found[f"more:{way}:{hub.as_json()}"].append(end)
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
