"""The revision of a ledger: every transaction that changes what a state knows raises it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Begin to count."""
    op.add_column("ledger", sa.Column("revision", NUMBER, nullable=False, server_default="0"))
