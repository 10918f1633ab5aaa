"""The whole graph of assets and flows, and what its nodes are called and how they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, or_, select

from assetflow.core.graph.layout import WholeGraph
from assetflow.core.graph.lineage import Edge, Node, edge_of
from assetflow.core.rules.ended_runs import FAILED
from assetflow.core.values.conditions import Token
from assetflow.ledger.read import Topic
from assetflow.ledger.read.assets import HIDDEN, READABLE_NAME
from assetflow.ledger.records import DeclaredEdge
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.tables import (
    ALIAS_LINK,
    ASSET,
    ASSET_NAME,
    CONSUMER,
    CONSUMER_TOKEN,
    DECISION,
    EDGE,
    EVENT,
    HIDDEN_ASSET,
    LEDGER,
)

_LIVE = CONSUMER.c.removed_at.is_(None)
_KINDS = ("uri", "name", "alias")


def _by_token(query: Select[Any], kind: ColumnElement[str], value: ColumnElement[str]) -> Select[Any]:
    return query.where(or_(*(and_(kind == each, in_values(value, each)) for each in _KINDS)))


_SCHEDULES = (
    select(CONSUMER.c.name, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
    .join(CONSUMER, CONSUMER.c.id == CONSUMER_TOKEN.c.consumer)
    .where(_LIVE)
    .order_by(CONSUMER.c.id, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
)
_SCHEDULES_OF_TOKENS = _by_token(_SCHEDULES, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
_SCHEDULES_OF_FLOWS = _SCHEDULES.where(in_values(CONSUMER.c.name, "flow"))
_DATA = select(EDGE.c.name, EDGE.c.kind, EDGE.c.value, EDGE.c.direction).order_by(EDGE.c.name, EDGE.c.value)
_DATA_OF_TOKENS = _by_token(_DATA, EDGE.c.kind, EDGE.c.value)
_DATA_OF_FLOWS = _DATA.where(in_values(EDGE.c.name, "flow"))
_DECLARED = select(EDGE.c.deployment_id, EDGE.c.name, EDGE.c.direction, EDGE.c.kind, EDGE.c.value)
_ALL_LINKS = select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias)
_LINKS = _ALL_LINKS.where(ALIAS_LINK.c.uri.not_in(HIDDEN))
_LINKS_OF_ASSETS = _ALL_LINKS.where(in_values(ALIAS_LINK.c.uri, "uri"))
_LINKS_OF_ALIASES = _LINKS.where(in_values(ALIAS_LINK.c.alias, "alias"))
_OWNERS = select(ASSET_NAME.c.name, ASSET_NAME.c.uri)
_OWNERS_OF_NAMES = _OWNERS.where(in_values(ASSET_NAME.c.name, "name"))
_NAMES_OF_ASSETS = select(ASSET_NAME.c.name).where(in_values(ASSET_NAME.c.uri, "uri"))
_GROUPS = select(ASSET.c.uri, ASSET.c.group).where(ASSET.c.group != "")
_NEWEST = (
    select(EVENT.c.occurred)
    .where(EVENT.c.uri == ASSET.c.uri)
    .order_by(EVENT.c.sequence.desc())
    .limit(1)
    .scalar_subquery()
)
_ASSETS = select(ASSET.c.uri, READABLE_NAME, _NEWEST, ASSET.c.group).where(in_values(ASSET.c.uri, "uris"))
# All that the whole graph follows from: each transaction that changes it has a revision of its own, but not hiding.
_REVISION = select(LEDGER.c.revision)
_HIDDEN = select(HIDDEN_ASSET.c.uri, HIDDEN_ASSET.c.sequence).order_by(HIDDEN_ASSET.c.uri)
_LATER = DECISION.alias("later")
_FLOWS = (
    select(
        CONSUMER.c.name,
        CONSUMER.c.paused,
        CONSUMER.c.held,
        DECISION.c.status,
        DECISION.c.run_state,
        DECISION.c.ended,
        DECISION.c.made,
    )
    .select_from(CONSUMER)
    .outerjoin(
        DECISION,
        DECISION.c.number
        == select(func.max(_LATER.c.number))
        .where(_LATER.c.consumer == CONSUMER.c.id)
        .correlate(CONSUMER)
        .scalar_subquery(),
    )
    .where(in_values(CONSUMER.c.name, "flows"), _LIVE, CONSUMER.c.listed)
)


Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class NodeFacts:
    """The name and the state of a node.

    Attributes:
        name: its readable name.
        state: of a flow, one of `paused`, `held`, `failed`, `running`, `completed`, `never run`, `not scheduled`; of an
            asset `updated` or `never updated`.
        at: when an asset was updated, or when the last run of a flow ended or was decided.
        group: the group of an asset that has one.
    """

    name: str
    state: str = ""
    at: datetime | None = None
    group: str | None = None


@dataclass(frozen=True)
class _Known:
    """The graph as it was read last, with the rows that it was made from."""

    age: Sequence[Rows]
    rows: Sequence[Rows]
    graph: WholeGraph


class GraphReader(Topic):
    """Reads the graph."""

    def __init__(self, connect: Connect) -> None:
        super().__init__(connect)
        self._known: _Known | None = None

    def whole(self) -> WholeGraph:
        """Return all assets and flows: the same object for as long as nothing of them changes."""
        with self._connect() as connection:
            age = [_rows(connection, query) for query in (_REVISION, _HIDDEN)]
            known = self._known
            if known is not None and known.age == age:
                return known.graph
            rows = [_rows(connection, query) for query in (_OWNERS, _LINKS, _SCHEDULES, _DATA, _GROUPS)]
        graph = known.graph if known is not None and known.rows == rows else _graph(rows)
        self._known = _Known(age, rows, graph)
        return graph

    def groups(self) -> dict[str, str]:
        """Return the group of each asset that has one, by URI."""
        return dict(self._rows(_GROUPS))

    def facts(self, nodes: Collection[Node]) -> dict[Node, NodeFacts]:
        """Return the facts about these nodes."""
        uris = {"uris": [node.value for node in nodes if node.kind == "asset"]}
        flows = {"flows": [node.value for node in nodes if node.kind == "flow"]}
        with self._connect() as connection:
            assets = {uri: _asset(*row) for uri, *row in connection.execute(_ASSETS, uris).all()}
            states = {row[0]: _flow(row) for row in connection.execute(_FLOWS, flows).all()}
        known = {"asset": assets, "flow": states}
        return {node: known.get(node.kind, {}).get(node.value) or _unknown(node) for node in nodes}


def _rows(connection: Connection, query: Select[Any], given: Mapping[str, Collection[str]] | None = None) -> Rows:
    # Reading all at once takes half as long as row by row.
    return [tuple(row) for row in connection.execute(query, given).all()]


def _graph(rows: Sequence[Rows]) -> WholeGraph:
    *of_edges, groups = rows
    return WholeGraph(list(_edges(*of_edges)), dict(groups))


def _edges(owners: Rows, links: Rows, schedules: Rows, data: Rows) -> Iterator[Edge]:
    """Yield all edges, in a fixed order."""
    uris: dict[str, str] = dict(owners)
    for uri, alias in links:
        yield Edge(Node("asset", uri), Node("alias", alias), "links")
    for flow, kind, value in schedules:
        yield edge_of(flow, Token(kind, value), "schedules", uris)
    for flow, kind, value, way in data:
        yield edge_of(flow, Token(kind, value), way, uris)


def _asset(name: str, at: datetime | None, group: str) -> NodeFacts:
    return NodeFacts(name, "updated" if at else "never updated", at, group or None)


def _unknown(node: Node) -> NodeFacts:
    states = {"asset": "never updated", "flow": "not scheduled"}
    return NodeFacts(node.value, states.get(node.kind, node.kind))


def _flow(row: Row[Any]) -> NodeFacts:
    name, paused, held, status, run_state, ended, made = row
    if paused or held:
        state = "paused" if paused else "held"
    elif status is None:
        state = "never run"
    elif status == "undeliverable" or run_state in FAILED:
        state = "failed"
    else:
        state = "running" if ended is None else (run_state or "completed").lower()
    return NodeFacts(name, state, ended or made)


class LineageReader(Topic):
    """Reads lineage: in a few statements, whatever the size of the ledger."""

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
            return list(_edges_of(connection, wanted))


def _found(connection: Connection, query: Select[Any], given: Mapping[str, Collection[str]]) -> Rows:
    """Return the rows for these values. Without values, no statement is sent."""
    return _rows(connection, query, given) if any(given.values()) else []


def _edges_of(connection: Connection, wanted: Mapping[str, list[str]]) -> Iterator[Edge]:
    uris, aliases, flows = wanted["asset"], wanted["alias"], {"flow": wanted["flow"]}
    names = [name for (name,) in _found(connection, _NAMES_OF_ASSETS, {"uri": uris})]
    tokens = {"uri": uris, "name": [*wanted["name"], *names], "alias": aliases}
    links = [
        *_found(connection, _LINKS_OF_ASSETS, {"uri": uris}),
        *_found(connection, _LINKS_OF_ALIASES, {"alias": aliases}),
    ]
    schedules = [
        *_found(connection, _SCHEDULES_OF_TOKENS, tokens),
        *_found(connection, _SCHEDULES_OF_FLOWS, flows),
    ]
    data = [*_found(connection, _DATA_OF_TOKENS, tokens), *_found(connection, _DATA_OF_FLOWS, flows)]
    named = [value for _, kind, value, *_ in (*schedules, *data) if kind == "name"]
    owners = _found(connection, _OWNERS_OF_NAMES, {"name": list(dict.fromkeys(named))})
    return _edges(owners, links, schedules, data)
