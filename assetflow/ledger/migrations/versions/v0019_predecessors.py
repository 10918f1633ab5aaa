"""The decision before each run of an Eager or Lazy flow."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the column. Of the runs until now it stays empty: it is needed for new runs only."""
    op.add_column("kept_run", sa.Column("predecessor", sa.Uuid(), nullable=True))
