"""Assets that deployments declare, with the readable names of the declarations."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_ADD_DECLARED = sa.text(
    """
    INSERT INTO asset (uri, "group", extra, first_seen)
    SELECT DISTINCT value, '', '{}', CAST(:now AS VARCHAR(32)) FROM edge
    WHERE kind = 'uri' AND value NOT IN (SELECT uri FROM asset)
    ORDER BY value
    """
)


def upgrade() -> None:
    """Add the column, and the assets that only edges name; what else is declared comes with the next deployment."""
    op.add_column("edge", sa.Column("label", sa.String(), nullable=True))
    where = sa.text("label IS NOT NULL")
    op.create_index("edge_label", "edge", ["label"], sqlite_where=where, postgresql_where=where)
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    op.get_bind().execute(_ADD_DECLARED, {"now": now})
