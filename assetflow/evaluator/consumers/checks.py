"""Find flows that hardly ever run: Lazy ones that no policy pulls, Eager ones without inputs (contract 8.4, 8.14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from uuid import UUID

from assetflow.core.freshness.graph import DataGraph, FlowNode
from assetflow.core.values.conditions import Leaf, Token
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.watchers import AssetWatcher
from assetflow.core.wire.declarations import FlowDeclaration, resolved, uris_of_names
from assetflow.core.wire.deployments import Deployed
from assetflow.errors import NameTaken

_LAZY = "is Lazy and never runs: no asset that it or a flow below it makes has a FreshnessPolicy"
_EAGER = "is Eager and reads nothing: it runs once, and after new code. Name inlets, or give it a timetable"


def seldom_run(declarations: Mapping[str, FlowDeclaration]) -> dict[str, str]:
    """Return the names of the flows that hardly ever run as they are declared, each with a sentence about it.

    Parameters:
        declarations: the declarations of flows, by the name of the consumer.
    """
    if all(each.options.schedule.keeping is None for each in declarations.values()):
        return {}
    graph = _graph_of(declarations)
    nodes = sorted(graph.all(), key=lambda node: node.consumer.name)
    return {node.consumer.name: f"{node.consumer.name} {why}" for node in nodes if (why := _why(graph, node))}


def _why(graph: DataGraph, node: FlowNode) -> str:
    """Return why a flow hardly ever runs; empty if it may run as often as it should."""
    if node.is_lazy:
        return "" if _is_pulled(graph, node) else _LAZY
    # An OnMissing flow is meant to run once.
    return _EAGER if node.keeping is not None and node.keeping.on and not node.inputs else ""


def _graph_of(declarations: Mapping[str, FlowDeclaration]) -> DataGraph:
    uris = uris_of_names(declarations.values())

    def resolve(token: Token) -> str | None:
        return token.value if token.kind == "uri" else uris.get(token.value)

    consumers = [
        Consumer(number, name, UUID(int=number), declaration.options)
        for number, (name, declaration) in enumerate(sorted(declarations.items()), 1)
    ]
    return DataGraph(consumers, resolve, lambda uri: frozenset({Token("uri", uri)}))


def _is_pulled(graph: DataGraph, lazy: FlowNode) -> bool:
    """Return True if an Eager or Lazy flow below, or the flow itself, makes an asset with a policy."""
    below = (node for number in graph.below([lazy.id]) if (node := graph.find(number)) is not None)
    keeping = (node for node in below if node.keeping is not None and not node.is_partitioned)
    return any(graph.policy(uri) is not None for node in keeping for uri in node.outputs)


MOST = 20

Node = str | Token


@dataclass(frozen=True)
class Cycle:
    """A path from a consumer back to itself: consumers and assets in turn, the first consumer at both ends."""

    path: tuple[Node, ...]

    def __str__(self) -> str:
        nodes = " → ".join(node.value if isinstance(node, Token) else node for node in self.path)
        return f"{self.path[0]!r} is scheduled on what its own runs lead to: {nodes}"


def find_cycles(declarations: Mapping[str, FlowDeclaration]) -> list[Cycle]:
    """Return the cycles among consumers, at most 20.

    Parameters:
        declarations: the declarations of flows, by the name of the consumer.
    """
    # From each node to its predecessors: a consumer's are the assets of its schedule, an asset's are its producers.
    before: dict[Node, dict[Node, None]] = {}
    uris = uris_of_names(declarations.values())
    for name, declaration in sorted(declarations.items()):
        before[name] = {resolved(leaf.token, uris): None for leaf in _leaves(declaration)}
        for outlet in declaration.produces:
            before.setdefault(resolved(outlet.token, uris), {})[name] = None
    found: list[Cycle] = []
    while len(found) < MOST and (nodes := _one_cycle(before)):
        path = _from_first_consumer(nodes)
        found.append(Cycle(path))
        # Break this cycle, so that the search finds the next one.
        before[path[-1]].pop(path[-2])
    return found


def _leaves(declaration: FlowDeclaration) -> Iterable[Leaf]:
    condition = declaration.options.schedule.condition
    return () if condition is None else condition.leaves


def _one_cycle(before: Mapping[Node, Iterable[Node]]) -> list[Node] | None:
    """Return the nodes of a cycle, the first one at both ends, or `None`."""
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def _from_first_consumer(nodes: list[Node]) -> tuple[Node, ...]:
    ring = nodes[:-1]
    first = min(node for node in ring if isinstance(node, str))
    start = ring.index(first)
    return (*ring[start:], *ring[:start], first)


class WatcherNames:
    """The names of watchers of all deployments.

    Parameters:
        deployed: the deployments, by id, as they are now.

    Attributes:
        conflicts: the deployments that give a name to another trigger than others do.
    """

    def __init__(self, deployed: Mapping[UUID, Deployed]) -> None:
        self._deployed = deployed
        self.conflicts: set[UUID] = set()

    def check(self, deployed: Deployed) -> NameTaken | None:
        """Return the error if another deployment gives the name of a watcher to another trigger."""
        mine = {each.name: each for each in _watchers_of(deployed)}
        self.conflicts.discard(deployed.id)
        if not mine:
            return None
        for other in self._deployed.values():
            if other.id == deployed.id or other.id in self.conflicts:
                continue
            for theirs in _watchers_of(other):
                if theirs.name in mine and mine[theirs.name].trigger != theirs.trigger:
                    self.conflicts.add(deployed.id)
                    return _name_taken(deployed, mine[theirs.name], other, theirs)
        return None


def _name_taken(deployed: Deployed, mine: AssetWatcher, other: Deployed, theirs: AssetWatcher) -> NameTaken:
    return NameTaken(
        f"the watcher {mine.name!r} is {theirs.trigger.describe()} in {other.where}, and "
        f"{mine.trigger.describe()} here",
        where=deployed.where,
        fix="Give one of them another name, or deploy both with the same trigger",
        rule="10.1",
    )


def _watchers_of(deployed: Deployed) -> Iterable[AssetWatcher]:
    assets = () if deployed.declaration is None else deployed.declaration.assets
    return (watcher for asset in assets for watcher in asset.watchers)
