"""Find flows that hardly ever run: Lazy ones that no policy pulls, Eager ones without inputs (contract 8.4, 8.14)."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from assetflow.core.condition_tree import Token
from assetflow.core.freshness.graph import DataGraph, FlowNode
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer
from assetflow.core.wire import FlowDeclaration

_LAZY = "is Lazy and never runs: no asset that it or a flow below it makes has a FreshnessPolicy"
_EAGER = "is Eager and reads nothing: it runs once, and after new code. Name inlets, or give it a timetable"


def seldom_run(declarations: Mapping[str, FlowDeclaration]) -> list[str]:
    """Return a sentence for each flow that hardly ever runs as it is declared, by name.

    Parameters:
        declarations: the declarations of flows, by the name of the consumer.
    """
    if all(each.options.schedule.keeping is None for each in declarations.values()):
        return []
    graph = _graph_of(declarations)
    nodes = sorted(graph.all(), key=lambda node: node.consumer.name)
    found = ((node.consumer.name, _why(graph, node)) for node in nodes)
    return [f"{name} {why}" for name, why in found if why]


def _why(graph: DataGraph, node: FlowNode) -> str:
    """Return why a flow hardly ever runs; empty if it may run as often as it should."""
    if node.is_lazy:
        return "" if _is_pulled(graph, node) else _LAZY
    # An OnMissing flow is meant to run once.
    return _EAGER if node.keeping is not None and node.keeping.on and not node.inputs else ""


def _graph_of(declarations: Mapping[str, FlowDeclaration]) -> DataGraph:
    uris = {asset.name: asset.uri for each in declarations.values() for asset in each.assets}
    uris |= {
        outlet.name: outlet.uri
        for each in declarations.values()
        for outlet in (*each.produces, *each.reads)
        if isinstance(outlet, Asset)
    }

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
