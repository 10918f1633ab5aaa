"""Consumers that lists leave out: flows that stand in the data graph only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the column. The evaluator adds the flows without a schedule when it looks at the deployments."""
    op.add_column("consumer", sa.Column("listed", sa.Boolean(), nullable=False, server_default=sa.true()))
