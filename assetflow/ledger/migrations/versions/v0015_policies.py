"""Freshness policies, and the changes of their states."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.String(32)


def upgrade() -> None:
    """Add the tables. They are filled when the first flow with a freshness policy is deployed."""
    op.create_table(
        "policy",
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("declaration", sa.Text(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("state_since", MOMENT),
        sa.Column("data_time", sa.String()),
        sa.Column("due", MOMENT),
        sa.Column("next_change", MOMENT),
        sa.Column("chain", sa.Text(), nullable=False),
    )
    _add_partial_index("policy_due", "policy", "due", where="due IS NOT NULL")
    _add_partial_index("policy_next_change", "policy", "next_change", where="next_change IS NOT NULL")
    op.create_table(
        "policy_touch",
        sa.Column("at", MOMENT, primary_key=True),
        sa.Column("uri", sa.String(), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "policy_change",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("data_time", sa.String()),
        sa.Column("lag", sa.Float()),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("causes", sa.Text(), nullable=False),
        sa.Column("maker", NUMBER),
        sa.Column("posted", MOMENT),
        sa.Column("stored", MOMENT),
    )
    op.create_index("policy_change_uri_number", "policy_change", ["uri", "number"])
    _add_partial_index("policy_change_to_tell", "policy_change", "number", where="stored IS NULL")


def _add_partial_index(name: str, table: str, *columns: str, where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, list(columns), sqlite_where=condition, postgresql_where=condition)
