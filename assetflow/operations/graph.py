"""The picture of assets and flows: a neighbourhood or the whole, folded, placed, with names and states."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from assetflow.core.graph.drawing import MOST, Drawing, draw
from assetflow.core.graph.folding import Box, of_groups
from assetflow.core.graph.parts import around
from assetflow.core.lineage import Edge, Node
from assetflow.core.words import count, iso
from assetflow.ledger.read.graph import NodeFacts
from assetflow.ledger.read.reader import Reader


@dataclass(frozen=True)
class Wanted:
    """Which picture to make.

    Attributes:
        focus: the node in the middle; `None` for the whole graph.
        up, down: the levels around the focus; a level is one flow.
        fold: whether groups are folded; `None`: only those of a large whole.
        opened: the ids of boxes that are not folded.
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
    part = around(reader.lineage.edges_of, focus, up=wanted.up, down=wanted.down, most=MOST)
    edges = [Edge(source, target, kind) for (source, target), kinds in part.relations.items() for kind in kinds]
    groups = of_groups(edges, reader.graph.groups()) if wanted.fold else {}
    return _placed(reader, draw(part, groups, focus=focus, opened=wanted.opened, hubs=wanted.hubs), focus)


def _placed(reader: Reader, drawing: Drawing, focus: Node | None) -> Graph:
    picture, part = drawing.picture, drawing.part
    single = [box.nodes[0] for box in picture.boxes.values() if box.nodes[0].as_json() == box.id]
    facts = reader.graph.facts(single)
    late = {each.uri for each in reader.policies.all() if each.is_late}
    boxes = tuple(
        _box(box, picture.levels[box.id], facts, late, part.more, drawing.places[box.id])
        for box in picture.boxes.values()
    )
    links = tuple((source, target, tuple(sorted(kinds))) for (source, target), kinds in picture.links.items())
    return Graph("" if focus is None else focus.as_json(), boxes, links, part.truncated)


def _box(
    box: Box,
    level: int,
    facts: Mapping[Node, NodeFacts],
    late: Collection[str],
    more: Collection[Node],
    place: tuple[int, int],
) -> Placed:
    x, y = place
    node = box.nodes[0]
    if node.as_json() == box.id:
        told = facts[node]
        state = "late" if node.kind == "asset" and node.value in late else told.state
        return Placed(
            box.id,
            node.kind,
            node.value,
            told.name,
            state,
            told.at,
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
    return Placed(box.id, kind, value, name, words, None, number, flows, level, False, x, y)
