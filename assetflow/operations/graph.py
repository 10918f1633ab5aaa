"""The picture of assets and flows: folded, placed, with names and states; and the trees of what caused what."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Literal
from uuid import UUID

from assetflow.core.explain.trace import Trace, TracedRun, trace
from assetflow.core.graph.layout import MOST, Drawing, draw
from assetflow.core.graph.lineage import Box, EdgeKind, Node, NodeKind, Way, around, neighbourhood, tree
from assetflow.core.shapes import TextOrNull, shape
from assetflow.core.values.conditions import ConditionTree
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import IdStart, Sign, count, sign_of
from assetflow.errors import UnknownEvent
from assetflow.ledger.read.graph import NodeFacts
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.read.tracing import other_run
from assetflow.operations.lookup import find_decision, find_event, find_run, find_uri

# The signs of the states that are not well, the worst first.
UNWELL: tuple[Sign, ...] = ("bad", "missing", "stale", "wait", "busy", "pause")


@dataclass(frozen=True)
class Wanted:
    """Which picture to make.

    Attributes:
        focus: the node in the middle; `None` for the whole graph.
        up, down: the levels around the focus; a level is one flow.
        fold: whether groups are folded; `None`: only those of a large whole.
        opened: the ids of boxes that are not folded, and of nodes of which the next level is shown, too.
        hubs: whether the many ends of a hub are folded.
        most: around a focus, fewer levels are shown if there are more boxes.
        only_unwell: of the whole graph, only what is not well: what failed, is missing, stale, too old, waiting,
            running or paused.
    """

    focus: Node | None = None
    up: int = 1
    down: int = 3
    fold: bool | None = None
    opened: tuple[str, ...] = ()
    hubs: bool = True
    most: int = MOST
    only_unwell: bool = False


@shape
class Entry:
    """Where the lines of several assets enter a flow that their condition starts."""

    word: str
    """`all`, `any`, or `2 of 3`."""
    updated: int
    """How many of its assets were updated since its last run."""
    assets: int


@shape
class Placed:
    """A box of the picture: a node, a folded group, or the folded ends of a hub."""

    id: str
    kind: NodeKind | Literal["group", "more"]
    value: str
    """The URI, alias, name, flow or group."""
    name: str
    state: str
    """Of an asset `fail` or `warn` under its freshness policy, or `fresh`, `outdated`, `stale` or `missing` if it is
    compared with what it is made from, else `updated` or `never updated`. Of a flow `paused`, `held`, `never run`,
    `not scheduled`, or the state of its last run. Of several nodes their number in words."""
    at: datetime | None
    """When an asset was updated, or the last run of a flow ended or was decided."""
    group: str | None
    """The group of an asset that has one."""
    count: int
    """How many nodes it stands for."""
    flows: int
    """How many of them are flows."""
    level: int
    """The distance from the focus in edges; negative on the way up."""
    more: bool
    """It has neighbours that are not shown."""
    x: int
    y: int
    """The middle of the box."""
    states: Mapping[str, int]
    """Of a folded group, the number of its nodes in each state."""
    entry: Entry | None = None
    """Of a flow that is scheduled on several assets."""


@shape
class Link:
    """A relation of two boxes."""

    source: str
    target: str
    kinds: Sequence[EdgeKind]
    points: Sequence[int]
    """Where its line turns, from the source to the target: x and y of each point."""


@shape
class Frame:
    """The frame around the members of an open group."""

    id: str
    x: int
    y: int
    """The left upper corner."""
    width: int
    height: int
    states: Mapping[str, int]
    """The number of its members in each state."""


@shape
class Graph:
    """A picture of assets and flows."""

    focus: TextOrNull
    nodes: Sequence[Placed]
    edges: Sequence[Link]
    frames: Sequence[Frame]
    truncated: bool
    up: int
    down: int
    """The levels around the focus that are shown: fewer than asked for, if these have more boxes than one can read."""

    def way(self, way: Way) -> Iterator[tuple[Placed, int]]:
        """Yield what follows from the focus (or leads to it), as a tree, with the depth of each box, from 1.

        Without a focus, `down` has all boxes, below those to which nothing leads.
        """
        boxes = {each.id: each for each in self.nodes}
        following: defaultdict[str, list[str]] = defaultdict(list)
        for link in self.edges:
            source, target = (link.source, link.target) if way == "down" else (link.target, link.source)
            if not self.focus or boxes[target].level * (1 if way == "down" else -1) > 0:
                following[source].append(target)

        def place(box: str) -> tuple[int, int]:
            return boxes[box].y, boxes[box].x

        led_to = {target for targets in following.values() for target in targets}
        starts = sorted(boxes, key=lambda box: (box in led_to, place(box)))
        for box, depth in tree([self.focus] if self.focus else starts, following, place):
            if box != self.focus:
                yield boxes[box], depth if self.focus else depth + 1


def graph_of(reader: Reader, wanted: Wanted) -> Graph:
    """Return a picture of the graph."""
    focus = wanted.focus
    if focus is None and wanted.only_unwell:
        whole = reader.graph.whole()
        facts = _facts(reader, whole.nodes)
        return _placed(
            reader, whole.draw_only([node for node in facts if sign_of(facts[node].state) in UNWELL]), wanted
        )
    if focus is None:
        return _placed(reader, reader.graph.whole().draw(wanted.fold, wanted.opened, wanted.hubs), wanted)
    groups = reader.graph.groups()

    def drawn(shown: Wanted) -> Drawing:
        opened = [node for each in shown.opened if (node := Node.from_json(each)) is not None]
        part = around(reader.lineage.edges_of, focus, up=shown.up, down=shown.down, most=MOST, opened=opened)
        return draw(part, groups, fold=bool(shown.fold), focus=focus, opened=shown.opened, hubs=shown.hubs)

    drawing = drawn(wanted)
    # Whoever opens a box wants to see what is in it.
    while not wanted.opened and len(drawing.picture.boxes) > wanted.most and max(wanted.up, wanted.down) > 1:
        fewer = max(wanted.up, wanted.down) - 1
        wanted = replace(wanted, up=min(wanted.up, fewer), down=min(wanted.down, fewer))
        drawing = drawn(wanted)
    return _placed(reader, drawing, wanted)


def _placed(reader: Reader, drawing: Drawing, wanted: Wanted) -> Graph:
    focus = wanted.focus
    picture, part, places = drawing.picture, drawing.part, drawing.places
    facts = _facts(reader, [node for box in picture.boxes.values() for node in box.nodes])
    placed = [
        _box(box, picture.levels[box.id], facts, part.more, places.boxes[box.id]) for box in picture.boxes.values()
    ]
    entries = _entries(reader, [box.value for box in placed if box.kind == "flow"])
    boxes = tuple(replace(box, entry=entries.get(box.value)) if box.kind == "flow" else box for box in placed)
    links = [
        Link(source, target, sorted(kinds), [*chain(*places.routes.get((source, target), ()))])
        for (source, target), kinds in picture.links.items()
    ]
    frames = [
        Frame(
            name, *frame.corner, *frame.size, Counter(facts[picture.boxes[box].nodes[0]].state for box in frame.members)
        )
        for name, frame in sorted(places.frames.items())
    ]
    return Graph("" if focus is None else focus.as_json(), boxes, links, frames, part.truncated, wanted.up, wanted.down)


def _entries(reader: Reader, flows: Collection[str]) -> dict[str, Entry]:
    """Return what the condition of each flow needs, for those with several assets."""
    consumers = reader.consumers
    return {
        each.name: Entry(word, each.updated, len(each.record.consumer.schedule.tokens))
        for each in consumers.overviews(consumers.called(flows), with_last=False)
        if (word := _word_of(each.record.consumer.schedule.condition))
    }


def _word_of(condition: ConditionTree | None) -> str:
    while condition is not None and len(condition.members) == 1:
        condition = condition.members[0]
    if condition is None or (gate := condition.gate) is None:
        return ""
    return f"{gate.argument} of {gate.arity}" if gate.kind == "at_least" else gate.kind


def _facts(reader: Reader, nodes: Collection[Node]) -> dict[Node, NodeFacts]:
    """Return the facts about nodes; where it is known, the state of an asset says if it is too old, or up to date."""
    facts = reader.graph.facts(nodes)
    uris = [node.value for node in nodes if node.kind == "asset"]
    states = reader.freshness.states(uris) if reader.freshness.compares() else {}
    states |= {each.uri: each.record.state for each in reader.policies.all() if each.is_too_old}
    return {
        node: replace(told, state=states[node.value]) if node.kind == "asset" and node.value in states else told
        for node, told in facts.items()
    }


@shape
class LineageNode:
    """A node of the graph around another one."""

    id: str
    kind: NodeKind
    value: str
    """The URI, alias, name or flow."""
    name: str
    group: str | None
    state: str
    """As in the picture."""
    at: datetime | None
    """When an asset was updated, or the last run of a flow ended or was decided."""
    distance: int
    """The number of edges between it and the focus."""
    more: bool
    """It has neighbours that are not shown."""


@shape
class LineageEdge:
    """An edge of the graph, from cause to effect."""

    source: str
    target: str
    kind: EdgeKind


@shape
class Lineage:
    """A part of the graph."""

    focus: str
    nodes: Sequence[LineageNode]
    edges: Sequence[LineageEdge]
    truncated: bool


def lineage_of(reader: Reader, focus: Node, depth: int, *, kinds: Collection[EdgeKind], most: int) -> Lineage:
    """Return the part of the graph around a node: what `neighbourhood` finds, with names, groups and states."""
    part = neighbourhood(reader.lineage.edges_of, focus, depth, kinds=kinds, most=most)
    facts = _facts(reader, list(part.distances))
    nodes = [
        LineageNode(
            id=node.as_json(),
            kind=node.kind,
            value=node.value,
            name=facts[node].name,
            group=facts[node].group,
            state=facts[node].state,
            at=facts[node].at,
            distance=distance,
            more=node in part.more,
        )
        for node, distance in part.distances.items()
    ]
    edges = [LineageEdge(edge.source.as_json(), edge.target.as_json(), edge.kind) for edge in part.edges]
    return Lineage(focus.as_json(), nodes, edges, part.truncated)


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
            {},
        )
    group, _, value = box.id.partition(":")
    kind: Literal["group", "more"] = "more" if group == "more" else "group"
    number = len(box.nodes)
    name = f"+{number}" if kind == "more" else value
    flows = sum(each.kind == "flow" for each in box.nodes)
    parts = [(number - flows, "asset"), (flows, "flow")]
    words = ", ".join(count(each, word) for each, word in parts if each)
    states = Counter(facts[each].state for each in box.nodes if each in facts)
    return Placed(box.id, kind, value, name, words, None, None, number, flows, level, False, x, y, states)


# The updates, or the runs, that a tree begins with.
Root = tuple[Sequence[AssetEvent], Sequence[TracedRun]]


def trace_of(reader: Reader, what: str, now: datetime) -> Trace:
    """Return the tree of causes of what a user names.

    Parameters:
        what: an event by its id or number, a run by its id or that of its decision, or an asset by its name or URI, for
            its newest update; of an id, the first eight characters are enough.

    Raises:
        UnknownEvent, UnknownAsset: nothing is called that, or the asset was never updated.
        InvalidAsset: the text is not a name, and cannot be a URI.
    """
    root = _root(reader, what)
    return trace(reader.tracing.follow(*root, now), *root)


def newest_traces(reader: Reader, limit: int, now: datetime) -> list[Trace]:
    """Return the newest trees, the newest first: those of updates and runs that nothing led to.

    The runs that the backfills of a flow begin with are one tree.
    """
    first, alone = reader.tracing.first_updates(limit), reader.tracing.alone(limit)
    roots: list[Root] = [root for group in first for root in _roots_of(group)]
    others = [run for _, runs in roots for run in runs]
    causes = reader.tracing.follow([event for group in first for event in group], [*alone, *others], now)
    led = {each.run.id for each in causes.runs if each.by}
    groups: dict[object, list[TracedRun]] = {}
    for run in alone:
        if run.id not in led:
            groups.setdefault(run.flow if run.kind == "backfill" else run.id, []).append(run)
    found = [trace(causes, *root) for root in (*roots, *(((), runs) for runs in groups.values()))]
    return sorted(found, key=lambda each: each.at, reverse=True)[:limit]


def _root(reader: Reader, what: str) -> Root:
    with suppress(ValueError):
        return _with_id(reader, UUID(what))
    if what.isascii() and what.isdigit():
        return reader.tracing.recorded_with(find_event(reader, int(what))), ()
    start = IdStart.of(what)
    if start is not None:
        events, decisions = reader.events.beginning(start, 2), reader.decisions.beginning(start, 2)
        if events or decisions:
            return _with_id(reader, find_event(reader, start) if events else find_decision(reader, start).id)
        if reader.ended_runs.beginning(start, 1):
            return _with_id(reader, find_run(reader, start))
    uri = find_uri(reader, what)
    newest = reader.events.newest([uri]).get(uri)
    if newest is None:
        raise UnknownEvent(f"{what} was never updated", fix="Name an asset that was, an event or a run")
    return reader.tracing.recorded_with(newest.event), ()


def _with_id(reader: Reader, number: UUID) -> Root:
    if events := reader.tracing.recorded_with(number):
        return events, ()
    run = reader.tracing.run_with(number)
    if run is None:
        raise UnknownEvent(
            f"no event, decision or run has the id {number}",
            fix="A run that assetflow did not start is known once it has ended or updated an asset: "
            "`assetflow runs ls` and `assetflow events ls` list what is known",
        )
    return (), [run]


def _roots_of(group: Sequence[AssetEvent]) -> Iterator[Root]:
    """Yield the run that made some updates, else each asset that was updated."""
    if group[0].source_flow_run is not None:
        yield (), [other_run(group)]
    else:
        for uri in dict.fromkeys(event.uri for event in group):
            yield [event for event in group if event.uri == uri], ()
