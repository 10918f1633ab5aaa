"""`assetflow lineage`: what leads to an asset or flow, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from assetflow.cli.output import print_json, show, text
from assetflow.cli.values import ZeroOrMore
from assetflow.cli.watch import watchable
from assetflow.core.graph.parts import Way
from assetflow.core.values.words import ago, count
from assetflow.ledger.read.reader import Reader
from assetflow.operations.graph import Graph, Placed, Wanted, graph_of
from assetflow.operations.lookup import find_node


@watchable
def lineage(what: str, /, *, up: ZeroOrMore = 1, down: ZeroOrMore = 3, json: bool = False) -> None:
    """Show what leads to an asset or a flow, and what follows from it.

    Parameters
    ----------
    what
        An asset by its URI or name, or a flow as `flow/deployment`.
    up, down
        How many levels to show on each way; a level is one flow.
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        node = find_node(reader, what)
        graph = graph_of(reader, Wanted(node, up, down, hubs=False))
    if json:
        print_json(graph.as_json())
    else:
        show(*(text(line) for line in _lines(graph, datetime.now(UTC))))


def _lines(graph: Graph, now: datetime) -> Iterator[str]:
    yield from (_one(each, now) for each in graph.boxes if each.id == graph.focus)
    ways: tuple[tuple[str, Way], ...] = (("Upstream", "up"), ("Downstream", "down"))
    for title, way in ways:
        found = list(graph.way(way))
        if found:
            yield f"{title}: {count(sum(box.flows for box, _ in found), 'flow')}"
            yield from (f"{'  ' * depth}{_one(box, now)}" for box, depth in found)
    if graph.truncated:
        yield f"Only the nearest {len(graph.boxes)} are shown."


def _one(box: Placed, now: datetime) -> str:
    when = "" if box.at is None else f" {ago(box.at, now)}"
    kind = "" if box.kind == "asset" else f" ({box.kind})"
    return f"{box.name}{kind}  {box.state}{when}"
