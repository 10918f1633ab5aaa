"""The index from an event to its aliases, for pruning."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the index."""
    op.create_index("event_alias_sequence", "event_alias", ["sequence"])
