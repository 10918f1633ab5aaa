"""The last revision of a ledger that changed more than its events and decisions show."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Begin to note it; the revisions before count as such."""
    op.add_column("ledger", sa.Column("rewritten", NUMBER, nullable=False, server_default="0"))
    op.execute("UPDATE ledger SET rewritten = revision")
