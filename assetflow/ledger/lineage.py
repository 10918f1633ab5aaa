"""The edges of the lineage graph that touch some nodes: a few statements, whatever the ledger holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, and_, or_, select

from assetflow.core.conditions import Token
from assetflow.core.lineage import Edge, Node, edge_of
from assetflow.ledger.among import among
from assetflow.ledger.tables import ALIAS_LINK, ASSET_NAME, CONSUMER, CONSUMER_TOKEN, EDGE

_KINDS = ("uri", "name", "alias")

_NAMES_OF_ASSETS = select(ASSET_NAME.c.name).where(among(ASSET_NAME.c.uri, "uri"))
_OWNERS = select(ASSET_NAME.c.name, ASSET_NAME.c.uri).where(among(ASSET_NAME.c.name, "name"))
_LINKS = select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias)
_LINKS_OF_ASSETS = _LINKS.where(among(ALIAS_LINK.c.uri, "uri"))
_LINKS_OF_ALIASES = _LINKS.where(among(ALIAS_LINK.c.alias, "alias"))


def _by_token(query: Any, kind: Any, value: Any) -> Any:
    return query.where(or_(*(and_(kind == each, among(value, each)) for each in _KINDS)))


_SCHEDULES = (
    select(CONSUMER.c.name, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
    .join(CONSUMER, CONSUMER.c.id == CONSUMER_TOKEN.c.consumer)
    .order_by(CONSUMER.c.id, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
)
_SCHEDULES_OF_TOKENS = _by_token(_SCHEDULES, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
_SCHEDULES_OF_FLOWS = _SCHEDULES.where(among(CONSUMER.c.name, "flow"), CONSUMER.c.removed_at.is_(None))
_DATA = select(EDGE.c.name, EDGE.c.kind, EDGE.c.value, EDGE.c.direction).order_by(EDGE.c.name, EDGE.c.value)
_DATA_OF_TOKENS = _by_token(_DATA, EDGE.c.kind, EDGE.c.value)
_DATA_OF_FLOWS = _DATA.where(among(EDGE.c.name, "flow"))


def edges_of(connection: Connection, nodes: Collection[Node]) -> list[Edge]:
    """The edges that touch at least one of the nodes: schedules, what flows produce and read, links of aliases."""
    wanted: dict[str, list[str]] = {"asset": [], "alias": [], "name": [], "flow": []}
    for kind, value in nodes:
        wanted[kind].append(value)
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
    links = _rows(connection, _LINKS_OF_ASSETS, {"uri": uris}) + _rows(
        connection, _LINKS_OF_ALIASES, {"alias": aliases}
    )
    linked = [Edge(Node("asset", uri), Node("alias", alias), "links") for uri, alias in links]
    return [*linked, *(edge_of(flow, token, kind, owners) for flow, token, kind in found)]


def _rows(connection: Connection, query: Any, given: dict[str, list[str]]) -> list[Any]:
    """The answer to a question about some values; nothing is asked about none."""
    found: Sequence[Any] = connection.execute(query, given).all() if any(given.values()) else []
    return list(found)
