"""Indexes for lists of events by time, and for what a flow produces and reads."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the indexes."""
    op.create_index("event_occurred_sequence", "event", ["occurred", "sequence"])
    op.create_index("edge_name", "edge", ["name"])
