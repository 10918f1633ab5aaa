"""The lineage graph of a ledger, from what is deployed: four statements, however large it is."""

from __future__ import annotations

from assetflow.core.conditions import Token
from assetflow.core.lineage import Edge, Node, edge_of
from assetflow.ledger.reader import Reader


def lineage_edges(reader: Reader) -> list[Edge]:
    """All edges: schedules of consumers, what flows produce and read, links of aliases."""
    found: list[Edge] = []
    owners: dict[str, str] = {}
    for asset in reader.assets():
        owners |= dict.fromkeys(asset.names, asset.uri)
        found += [Edge(Node("asset", asset.uri), Node("alias", alias), "links") for alias in asset.aliases]
    for record in reader.consumers():
        consumer = record.consumer
        found += [edge_of(consumer.name, token, "schedules", owners) for token in sorted(consumer.schedule.tokens)]
    found += [edge_of(edge.name, Token(edge.kind, edge.value), edge.direction, owners) for edge in reader.edges()]
    return found
