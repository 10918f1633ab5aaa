"""Sessions of the pages that users ended by logging out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "ended_session",
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("expires", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("session", name="ended_session_pkey"),
    )
