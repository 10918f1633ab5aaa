"""What deployments produce and read: for lineage, and so that these assets are known before their first update."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import Connection, delete, insert

from assetflow.core.assets import Asset, Outlet
from assetflow.core.codec import FlowDeclaration
from assetflow.ledger.book import LedgerBook
from assetflow.ledger.tables import EDGE

Row = dict[str, object]


def replace(book: LedgerBook, deployment_id: UUID, name: str, declaration: FlowDeclaration) -> None:
    """Write the edges of a deployment in the place of those it had; the assets that it names are known from then on.

    A readable name that stands there only is shown and found, and means nothing to conditions: what runs follows from
    updates and schedules alone (4.3).
    """
    drop(book.connection, deployment_id)
    of: Row = {"deployment_id": deployment_id, "name": name}
    rows = [*_rows(of, "produces", declaration.produces), *_rows(of, "reads", declaration.reads)]
    if rows:
        book.connection.execute(insert(EDGE), rows)
    for outlet in (*declaration.produces, *declaration.reads, *declaration.options.schedule.named_assets):
        if isinstance(outlet, Asset):
            book.names.describe(outlet)


def drop(connection: Connection, deployment_id: UUID) -> None:
    """Take the edges of a deployment away."""
    connection.execute(delete(EDGE).where(EDGE.c.deployment_id == deployment_id))


def _rows(of: Row, direction: str, outlets: Iterable[Outlet]) -> Iterable[Row]:
    labels: dict[tuple[str, str], str | None] = {}
    for outlet in outlets:
        named = isinstance(outlet, Asset) and outlet.name != outlet.uri
        labels[outlet.token] = outlet.label if named else labels.get(outlet.token)
    for (kind, value), label in labels.items():
        yield of | {"direction": direction, "kind": kind, "value": value, "label": label}
