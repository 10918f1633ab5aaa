"""Evaluators that stand by for the lease."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table of stand-bys."""
    op.create_table(
        "standby",
        sa.Column("holder", sa.Uuid(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("since", sa.String(32), nullable=False),
        sa.Column("renewed", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("holder", name="standby_pkey"),
    )
