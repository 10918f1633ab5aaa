"""Find Lazy flows that no freshness policy pulls: they never run (contract 8.14)."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from assetflow.core.assets import Asset
from assetflow.core.codec import FlowDeclaration
from assetflow.core.condition_tree import Token
from assetflow.core.consumers import Consumer
from assetflow.core.freshness.graph import DataGraph, FlowNode


def unpulled(declarations: Mapping[str, FlowDeclaration]) -> list[str]:
    """Return the names of the Lazy flows below which there is no policy that pulls them, sorted.

    Parameters:
        declarations: the declarations of flows, by the name of the consumer.
    """
    if not any(_is_lazy(each) for each in declarations.values()):
        return []
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
    graph = DataGraph(consumers, resolve, lambda uri: frozenset({Token("uri", uri)}))
    return [node.consumer.name for node in graph.all() if node.is_lazy and not _is_pulled(graph, node)]


def _is_lazy(declaration: FlowDeclaration) -> bool:
    keeping = declaration.options.schedule.keeping
    return keeping is not None and not keeping.is_eager


def _is_pulled(graph: DataGraph, lazy: FlowNode) -> bool:
    """Return True if an Eager or Lazy flow below, or the flow itself, makes an asset with a policy."""
    below = (node for number in graph.below([lazy.id]) if (node := graph.find(number)) is not None)
    keeping = (node for node in below if node.keeping is not None and not node.is_partitioned)
    return any(graph.policy(uri) is not None for node in keeping for uri in node.outputs)
