"""The whole graph of assets and flows, and what its nodes are called and how they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select

from assetflow.core.condition_tree import Token
from assetflow.core.lineage import Edge, Node, edge_of
from assetflow.core.run_ends import FAILED
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import ALIAS_LINK, ASSET, ASSET_NAME, CONSUMER, CONSUMER_TOKEN, DECISION, EDGE, EVENT

_LIVE = CONSUMER.c.removed_at.is_(None)
_SCHEDULES = (
    select(CONSUMER.c.name, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
    .join(CONSUMER, CONSUMER.c.id == CONSUMER_TOKEN.c.consumer)
    .where(_LIVE)
    .order_by(CONSUMER.c.id, CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
)
_DATA = select(EDGE.c.name, EDGE.c.kind, EDGE.c.value, EDGE.c.direction).order_by(EDGE.c.name, EDGE.c.value)
_LINKS = select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias)
_OWNERS = select(ASSET_NAME.c.name, ASSET_NAME.c.uri)
_GROUPS = select(ASSET.c.uri, ASSET.c.group).where(ASSET.c.group != "")
_NAMES = (
    select(ASSET_NAME.c.uri, func.min(ASSET_NAME.c.name))
    .where(in_values(ASSET_NAME.c.uri, "uris"), ASSET_NAME.c.name != ASSET_NAME.c.uri)
    .group_by(ASSET_NAME.c.uri)
)
_LABELS = (
    select(EDGE.c.value, func.min(EDGE.c.label))
    .where(in_values(EDGE.c.value, "uris"), EDGE.c.kind == "uri", EDGE.c.label.is_not(None))
    .group_by(EDGE.c.value)
)
_NEWEST = select(EVENT.c.uri, EVENT.c.occurred).where(
    EVENT.c.sequence.in_(select(func.max(EVENT.c.sequence)).where(in_values(EVENT.c.uri, "uris")).group_by(EVENT.c.uri))
)
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
    .where(in_values(CONSUMER.c.name, "flows"), _LIVE)
)


@dataclass(frozen=True)
class NodeFacts:
    """What a node is called, and how it is.

    Attributes:
        name: its readable name.
        state: of a flow, one of `paused`, `held`, `failed`, `running`, `completed`, `never run`, `not scheduled`; of an
            asset `updated` or `never updated`.
        at: when an asset was updated, or when the last run of a flow ended or was decided.
    """

    name: str
    state: str = ""
    at: datetime | None = None


class GraphReader:
    """Reads the graph. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    def edges(self) -> list[Edge]:
        """Return all edges, in a fixed order."""
        with self._connect() as connection:
            owners: dict[str, str] = dict(connection.execute(_OWNERS).tuples().all())
            found = [
                Edge(Node("asset", uri), Node("alias", alias), "links") for uri, alias in connection.execute(_LINKS)
            ]
            for flow, kind, value in connection.execute(_SCHEDULES):
                found.append(edge_of(flow, Token(kind, value), "schedules", owners))
            for flow, kind, value, way in connection.execute(_DATA):
                found.append(edge_of(flow, Token(kind, value), way, owners))
        return found

    def groups(self) -> dict[str, str]:
        """Return the group of each asset that has one, by URI."""
        with self._connect() as connection:
            return dict(connection.execute(_GROUPS).tuples().all())

    def facts(self, nodes: Collection[Node]) -> dict[Node, NodeFacts]:
        """Return the facts about these nodes."""
        uris = {"uris": [node.value for node in nodes if node.kind == "asset"]}
        flows = {"flows": [node.value for node in nodes if node.kind == "flow"]}
        with self._connect() as connection:
            names = _pairs(connection, _LABELS, uris) | _pairs(connection, _NAMES, uris)
            newest = _pairs(connection, _NEWEST, uris)
            states = {row[0]: row for row in connection.execute(_FLOWS, flows)}
        return {node: _facts(node, names, newest, states.get(node.value)) for node in nodes}


def _pairs(connection: Connection, query: Any, given: dict[str, list[str]]) -> dict[str, Any]:
    return dict(connection.execute(query, given).tuples().all())


def _facts(node: Node, names: dict[str, str], newest: dict[str, datetime], row: Row[Any] | None) -> NodeFacts:
    if node.kind == "asset":
        at = newest.get(node.value)
        return NodeFacts(names.get(node.value, node.value), "updated" if at else "never updated", at)
    if node.kind != "flow":
        return NodeFacts(node.value, node.kind)
    return NodeFacts(node.value, "not scheduled") if row is None else _flow(row)


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


def of_groups(edges: Iterable[Edge], groups: dict[str, str]) -> dict[Node, str]:
    """Return the group of each node: that of the asset, or for a flow that of what it makes, else of what starts it.

    An asset without a group is in that of its folder.
    """
    found: dict[Node, str] = {}
    starts: dict[Node, str] = {}
    for source, target, kind in edges:
        for node in (source, target):
            if node.kind == "asset" and node not in found:
                found[node] = groups.get(node.value) or node.value.rpartition("/")[0]
        if kind == "produces":
            found.setdefault(source, found.get(target, ""))
        elif target.kind == "flow":
            starts.setdefault(target, found.get(source, ""))
    return starts | found
