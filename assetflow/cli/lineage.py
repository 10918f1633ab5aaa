"""`assetflow lineage`: what leads to an asset or flow, and what follows from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from assetflow.cli.output import print_json, show, text
from assetflow.core.words import ago, count
from assetflow.ledger.read.reader import Reader
from assetflow.operations.graph import Graph, Placed, Wanted, graph_of
from assetflow.operations.lookup import find_node


def lineage(what: str, /, *, up: int = 1, down: int = 3, json: bool = False) -> None:
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
        graph = graph_of(reader, Wanted(node, max(0, up), max(0, down), hubs=False))
    if json:
        print_json(graph.as_json())
    else:
        show(*(text(line) for line in _lines(graph, datetime.now(UTC))))


def _lines(graph: Graph, now: datetime) -> Iterator[str]:
    boxes = {each.id: each for each in graph.boxes}
    before: defaultdict[str, list[str]] = defaultdict(list)
    after: defaultdict[str, list[str]] = defaultdict(list)
    for source, target, _ in graph.links:
        after[source].append(target)
        before[target].append(source)
    yield _one(boxes[graph.focus], now)
    for title, following, sign in (("Upstream", before, -1), ("Downstream", after, 1)):
        found = list(_tree(graph.focus, following, boxes, sign))
        flows = sum(boxes[name].flows for name, _ in found)
        if found:
            yield f"{title}: {count(flows, 'flow')}"
            yield from (f"{'  ' * depth}{_one(boxes[name], now)}" for name, depth in found)
    if graph.truncated:
        yield f"Only the nearest {len(graph.boxes)} are shown."


def _tree(
    focus: str, following: Mapping[str, Sequence[str]], boxes: Mapping[str, Placed], sign: int
) -> Iterator[tuple[str, int]]:
    """Yield what follows, each once below the first that leads to it, with its depth."""
    seen = {focus}
    stack = [(name, 1) for name in sorted(following[focus], reverse=True)]
    while stack:
        name, depth = stack.pop()
        if name not in seen and boxes[name].level * sign > 0:
            seen.add(name)
            yield name, depth
            stack += [(each, depth + 1) for each in sorted(following[name], reverse=True)]


def _one(box: Placed, now: datetime) -> str:
    when = "" if box.at is None else f" {ago(box.at, now)}"
    kind = "" if box.kind == "asset" else f" ({box.kind})"
    return f"{box.name}{kind}  {box.state}{when}"
