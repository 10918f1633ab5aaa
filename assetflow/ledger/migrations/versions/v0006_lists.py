"""Indexes for lists of events by time and by partition, and for what a flow produces and reads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the indexes."""
    op.create_index("event_occurred_sequence", "event", ["occurred", "sequence"])
    where = sa.text("partition_key IS NOT NULL")
    columns = ["uri", "partition_key", "sequence"]
    op.create_index("event_partition", "event", columns, sqlite_where=where, postgresql_where=where)
    op.create_index("edge_name", "edge", ["name"])
