"""Notes on the pages of runs: which decisions have theirs. Earlier runs get none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

WITHOUT = sa.text("noted IS NULL AND flow_run_id IS NOT NULL")


def upgrade() -> None:
    """Add the column, and the index that finds what is left to do."""
    op.add_column("decision", sa.Column("noted", sa.String(32), nullable=True))
    op.execute("UPDATE decision SET noted = launched WHERE flow_run_id IS NOT NULL")
    op.create_index("decision_without_note", "decision", ["number"], sqlite_where=WITHOUT, postgresql_where=WITHOUT)
