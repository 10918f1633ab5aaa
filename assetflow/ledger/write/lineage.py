"""Store what deployments declare to produce and to read: for lineage, and so that assets are known before an update."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, insert

from assetflow.core.assets import Asset, Outlet
from assetflow.core.codec import FlowDeclaration, declaration_from_text
from assetflow.ledger.fold.unit_of_work import UnitOfWork
from assetflow.ledger.sql.tables import EDGE
from assetflow.ledger.write.declared_watchers import replace_watchers
from assetflow.ledger.write.store import Store

Row = dict[str, object]

_DROP = delete(EDGE).where(EDGE.c.deployment_id == bindparam("deployment"))


class LineageWriter:
    """Writes lineage. All methods raise `LedgerLocked` and `LedgerError` if the ledger cannot be written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def declare(self, deployment_id: UUID, name: str, declaration_text: str, now: datetime) -> None:
        """Store what a deployment produces, reads and watches that is not in the data graph, and its assets.

        Raises:
            InvalidSchedule: the declaration cannot be read.
        """
        declaration = declaration_from_text(declaration_text, where=name)
        with self._store.transaction(now) as unit:
            replace_edges(unit, deployment_id, name, declaration)
            replace_watchers(unit.connection, deployment_id, declaration.assets, now)


def replace_edges(unit: UnitOfWork, deployment_id: UUID, name: str, declaration: FlowDeclaration) -> None:
    """Replace the edges of a deployment by those of its declaration.

    The assets that it names are known from then on. A readable name that only a declaration gives is shown and found,
    and means nothing to conditions: what runs follows from updates and schedules alone. Contract 4.3.
    """
    drop_edges(unit.connection, deployment_id)
    of: Row = {"deployment_id": deployment_id, "name": name}
    rows = [*_rows(of, "produces", declaration.produces), *_rows(of, "reads", declaration.reads)]
    if rows:
        unit.connection.execute(insert(EDGE), rows)
    outlets = (*declaration.produces, *declaration.reads, *declaration.options.schedule.named_assets)
    assets = [each for each in outlets if isinstance(each, Asset)]
    unit.state.names.load(asset.uri for asset in assets)
    for asset in assets:
        unit.state.names.describe(asset)


def drop_edges(connection: Connection, deployment_id: UUID) -> None:
    """Remove the edges of a deployment."""
    connection.execute(_DROP, {"deployment": deployment_id})


def _rows(of: Row, direction: str, outlets: Iterable[Outlet]) -> Iterable[Row]:
    labels: dict[tuple[str, str], str | None] = {}
    for outlet in outlets:
        named = isinstance(outlet, Asset) and outlet.name != outlet.uri
        labels[outlet.token] = outlet.label if named else labels.get(outlet.token)
    for (kind, value), label in labels.items():
        yield of | {"direction": direction, "kind": kind, "value": value, "label": label}
