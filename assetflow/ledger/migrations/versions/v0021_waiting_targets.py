"""An index for the targets that wait, which SQLite uses without statistics of the table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Put the verdict first: with the consumer alone, each pass read a larger index, with a row for each target."""
    waits = sa.text("verdict = 'waits'")
    op.drop_index("target_waits", "target")
    op.create_index("target_waits", "target", ["verdict", "consumer"], sqlite_where=waits, postgresql_where=waits)
