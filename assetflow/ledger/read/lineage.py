"""The edges of the lineage graph, read in a few statements whatever the size of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, or_, select

from assetflow.core.graph.lineage import Edge, Node, edge_of
from assetflow.core.values.conditions import Token
from assetflow.ledger.read.assets import HIDDEN
from assetflow.ledger.read.topic import Topic
from assetflow.ledger.records import DeclaredEdge
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import ALIAS_LINK, ASSET_NAME, CONSUMER, CONSUMER_TOKEN, EDGE

_KINDS = ("uri", "name", "alias")

_NAMES_OF_ASSETS = select(ASSET_NAME.c.name).where(in_values(ASSET_NAME.c.uri, "uri"))
_OWNERS = select(ASSET_NAME.c.name, ASSET_NAME.c.uri).where(in_values(ASSET_NAME.c.name, "name"))
_LINKS = select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias)
_LINKS_OF_ASSETS = _LINKS.where(in_values(ALIAS_LINK.c.uri, "uri"))
_LINKS_OF_ALIASES = _LINKS.where(in_values(ALIAS_LINK.c.alias, "alias"), ALIAS_LINK.c.uri.not_in(HIDDEN))


def _by_token(query: Any, kind: Any, value: Any) -> Any:
    return query.where(or_(*(and_(kind == each, in_values(value, each)) for each in _KINDS)))


_SCHEDULES = (
    select(CONSUMER.c.name, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
    .join(CONSUMER, CONSUMER.c.id == CONSUMER_TOKEN.c.consumer)
    .order_by(CONSUMER.c.id, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
)
_SCHEDULES_OF_TOKENS = _by_token(_SCHEDULES, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
_SCHEDULES_OF_FLOWS = _SCHEDULES.where(in_values(CONSUMER.c.name, "flow"), CONSUMER.c.removed_at.is_(None))
_DATA = select(EDGE.c.name, EDGE.c.kind, EDGE.c.value, EDGE.c.direction).order_by(EDGE.c.name, EDGE.c.value)
_DATA_OF_TOKENS = _by_token(_DATA, EDGE.c.kind, EDGE.c.value)
_DATA_OF_FLOWS = _DATA.where(in_values(EDGE.c.name, "flow"))


_DECLARED = select(EDGE.c.deployment_id, EDGE.c.name, EDGE.c.direction, EDGE.c.kind, EDGE.c.value)


class LineageReader(Topic):
    """Reads lineage."""

    def declared(self) -> list[DeclaredEdge]:
        """Return what deployments declare to produce and to read."""
        return [DeclaredEdge(*row) for row in self._rows(_DECLARED)]

    def other_flows(self, text: str, *, limit: int) -> list[str]:
        """Return the names of deployments with this text that declare assets, and are not among the consumers."""
        listed = select(CONSUMER.c.name).where(CONSUMER.c.removed_at.is_(None), CONSUMER.c.listed)
        query = select(EDGE.c.name).distinct().where(EDGE.c.name.icontains(text, autoescape=True))
        return [*self._scalars(query.where(EDGE.c.name.not_in(listed)).order_by(EDGE.c.name).limit(limit))]

    def edges_of(self, nodes: Collection[Node]) -> list[Edge]:
        """Return the edges that touch one of the nodes: schedules, what flows produce and read, links of aliases."""
        wanted: dict[str, list[str]] = {"asset": [], "alias": [], "name": [], "flow": []}
        for kind, value in nodes:
            wanted[kind].append(value)
        with self._connect() as connection:
            return [*_links(connection, wanted), *_edges_of_flows(connection, wanted)]


def _links(connection: Connection, wanted: Mapping[str, list[str]]) -> list[Edge]:
    rows = _rows(connection, _LINKS_OF_ASSETS, {"uri": wanted["asset"]})
    rows += _rows(connection, _LINKS_OF_ALIASES, {"alias": wanted["alias"]})
    return [Edge(Node("asset", uri), Node("alias", alias), "links") for uri, alias in rows]


def _edges_of_flows(connection: Connection, wanted: Mapping[str, list[str]]) -> list[Edge]:
    uris, aliases, flows = wanted["asset"], wanted["alias"], wanted["flow"]
    names = [row[0] for row in _rows(connection, _NAMES_OF_ASSETS, {"uri": uris})]
    tokens = {"uri": uris, "name": [*wanted["name"], *names], "alias": aliases}
    found: list[tuple[str, Token, Any]] = []
    for query, given in ((_SCHEDULES_OF_TOKENS, tokens), (_SCHEDULES_OF_FLOWS, {"flow": flows})):
        found += [(flow, Token(kind, value), "schedules") for flow, kind, value in _rows(connection, query, given)]
    for query, given in ((_DATA_OF_TOKENS, tokens), (_DATA_OF_FLOWS, {"flow": flows})):
        found += [(flow, Token(kind, value), way) for flow, kind, value, way in _rows(connection, query, given)]
    named = list(dict.fromkeys(token.value for _, token, _ in found if token.kind == "name"))
    owners: dict[str, str] = {row[0]: row[1] for row in _rows(connection, _OWNERS, {"name": named})}
    return [edge_of(flow, token, kind, owners) for flow, token, kind in found]


def _rows(connection: Connection, query: Any, given: Mapping[str, list[str]]) -> list[Any]:
    """Return the rows for these values. Without values, no statement is sent."""
    found: Sequence[Any] = connection.execute(query, given).all() if any(given.values()) else []
    return list(found)
