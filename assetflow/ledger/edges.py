"""What deployments produce and read, for lineage."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Connection, delete, insert

from assetflow.core.codec import FlowDeclaration
from assetflow.ledger.tables import EDGE


def replace(connection: Connection, deployment_id: UUID, name: str, declaration: FlowDeclaration) -> None:
    """Write the edges of a deployment in the place of those it had."""
    drop(connection, deployment_id)
    tokens = {("produces", *outlet.token): None for outlet in declaration.produces} | {
        ("reads", *outlet.token): None for outlet in declaration.reads
    }
    rows = [
        {"deployment_id": deployment_id, "name": name, "direction": direction, "kind": kind, "value": value}
        for direction, kind, value in tokens
    ]
    if rows:
        connection.execute(insert(EDGE), rows)


def drop(connection: Connection, deployment_id: UUID) -> None:
    """Take the edges of a deployment away."""
    connection.execute(delete(EDGE).where(EDGE.c.deployment_id == deployment_id))
