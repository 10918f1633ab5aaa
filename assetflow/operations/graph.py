"""The picture of assets and flows: a neighbourhood or the whole, folded, placed, with names and states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from assetflow.core.graph.layout import MOST, Drawing, draw
from assetflow.core.graph.lineage import Edge, EdgeKind, Node, neighbourhood
from assetflow.core.graph.parts import Box, Way, around, of_groups, tree
from assetflow.core.values.words import count, iso
from assetflow.ledger.read.graph import NodeFacts
from assetflow.ledger.read.reader import Reader


@dataclass(frozen=True)
class Wanted:
    """Which picture to make.

    Attributes:
        focus: the node in the middle; `None` for the whole graph.
        up, down: the levels around the focus; a level is one flow.
        fold: whether groups are folded; `None`: only those of a large whole.
        opened: the ids of boxes that are not folded, and of nodes from which the way goes on by another level.
        hubs: whether the many ends of a hub are folded.
    """

    focus: Node | None = None
    up: int = 1
    down: int = 3
    fold: bool | None = None
    opened: tuple[str, ...] = ()
    hubs: bool = True


@dataclass(frozen=True)
class Placed:
    """A box of the picture with its place.

    Attributes:
        kind: `asset`, `alias`, `name`, `flow`, `group`, or `more` for the folded ends of a hub.
        value: the URI, alias, name, flow or group.
        group: the group of an asset that has one.
        count, flows: the number of nodes that it stands for, and of flows among them.
        level: its distance from the focus in edges; negative on the way up.
        more: it has neighbours that are not shown.
    """

    id: str
    kind: str
    value: str
    name: str
    state: str
    at: datetime | None
    group: str | None
    count: int
    flows: int
    level: int
    more: bool
    x: int
    y: int

    def as_json(self) -> dict[str, object]:
        return {**self.__dict__, "at": iso(self.at)}


@dataclass(frozen=True)
class Graph:
    """A picture of assets and flows; `links` has the ids of two boxes, and whether that starts a flow."""

    focus: str
    boxes: tuple[Placed, ...]
    links: tuple[tuple[str, str, tuple[str, ...]], ...]
    truncated: bool

    def way(self, way: Way) -> Iterator[tuple[Placed, int]]:
        """Yield what follows from the focus (or leads to it), as a tree, with the depth of each box, from 1.

        Without a focus, `down` has all boxes, below those to which nothing leads.
        """
        boxes = {each.id: each for each in self.boxes}
        following: defaultdict[str, list[str]] = defaultdict(list)
        for link in self.links:
            source, target = link[:2] if way == "down" else (link[1], link[0])
            if not self.focus or boxes[target].level * (1 if way == "down" else -1) > 0:
                following[source].append(target)

        def place(box: str) -> tuple[int, int]:
            return boxes[box].y, boxes[box].x

        led_to = {target for targets in following.values() for target in targets}
        starts = sorted(boxes, key=lambda box: (box in led_to, place(box)))
        for box, depth in tree([self.focus] if self.focus else starts, following, place):
            if box != self.focus:
                yield boxes[box], depth if self.focus else depth + 1

    def as_json(self) -> dict[str, object]:
        return {
            "focus": self.focus or None,
            "nodes": [each.as_json() for each in self.boxes],
            "edges": [{"source": source, "target": target, "kinds": kinds} for source, target, kinds in self.links],
            "truncated": self.truncated,
        }


def graph_of(reader: Reader, wanted: Wanted) -> Graph:
    """Return a picture of the graph."""
    focus = wanted.focus
    if focus is None:
        return _placed(reader, reader.graph.whole().draw(wanted.fold, wanted.opened, wanted.hubs), None)
    opened = [node for each in wanted.opened if (node := Node.from_json(each)) is not None]
    part = around(reader.lineage.edges_of, focus, up=wanted.up, down=wanted.down, most=MOST, opened=opened)
    edges = [Edge(source, target, kind) for (source, target), kinds in part.relations.items() for kind in kinds]
    groups = of_groups(edges, reader.graph.groups()) if wanted.fold else {}
    return _placed(reader, draw(part, groups, focus=focus, opened=wanted.opened, hubs=wanted.hubs), focus)


def _placed(reader: Reader, drawing: Drawing, focus: Node | None) -> Graph:
    picture, part = drawing.picture, drawing.part
    single = [box.nodes[0] for box in picture.boxes.values() if box.nodes[0].as_json() == box.id]
    facts = _facts(reader, single)
    boxes = tuple(
        _box(box, picture.levels[box.id], facts, part.more, drawing.places[box.id]) for box in picture.boxes.values()
    )
    links = tuple((source, target, tuple(sorted(kinds))) for (source, target), kinds in picture.links.items())
    return Graph("" if focus is None else focus.as_json(), boxes, links, part.truncated)


def _facts(reader: Reader, nodes: Collection[Node]) -> dict[Node, NodeFacts]:
    """Return the facts about nodes; where it is known, the state of an asset says if it is late, or up to date."""
    facts = reader.graph.facts(nodes)
    uris = [node.value for node in nodes if node.kind == "asset"]
    states = reader.freshness.states(uris) if reader.freshness.compares() else {}
    states |= {each.uri: "late" for each in reader.policies.all() if each.is_late}
    return {
        node: replace(told, state=states[node.value]) if node.kind == "asset" and node.value in states else told
        for node, told in facts.items()
    }


def lineage_of(reader: Reader, focus: Node, depth: int, *, kinds: Collection[EdgeKind], most: int) -> dict[str, object]:
    """Return the part of the graph around a node as JSON: what `neighbourhood` finds, with names, groups and states."""
    part = neighbourhood(reader.lineage.edges_of, focus, depth, kinds=kinds, most=most)
    facts = _facts(reader, list(part.distances))
    nodes = [
        {
            "id": node.as_json(),
            "kind": node.kind,
            "value": node.value,
            "name": facts[node].name,
            "group": facts[node].group,
            "state": facts[node].state,
            "at": iso(facts[node].at),
            "distance": distance,
            "more": node in part.more,
        }
        for node, distance in part.distances.items()
    ]
    edges = [edge.as_json() for edge in part.edges]
    return {"focus": focus.as_json(), "nodes": nodes, "edges": edges, "truncated": part.truncated}


def _box(
    box: Box,
    level: int,
    facts: Mapping[Node, NodeFacts],
    more: Collection[Node],
    place: tuple[int, int],
) -> Placed:
    x, y = place
    node = box.nodes[0]
    if node.as_json() == box.id:
        told = facts[node]
        return Placed(
            box.id,
            node.kind,
            node.value,
            told.name,
            told.state,
            told.at,
            told.group,
            1,
            int(node.kind == "flow"),
            level,
            node in more,
            x,
            y,
        )
    kind, _, value = box.id.partition(":")
    number = len(box.nodes)
    name = f"+{number}" if kind == "more" else value
    flows = sum(each.kind == "flow" for each in box.nodes)
    parts = [(number - flows, "asset"), (flows, "flow")]
    words = ", ".join(count(each, word) for each, word in parts if each)
    return Placed(box.id, kind, value, name, words, None, None, number, flows, level, False, x, y)
