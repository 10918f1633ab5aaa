"""Backfills of assets, and of what lies below them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.String(32)


def upgrade() -> None:
    """Add the tables, which are empty until the first backfill of an asset."""
    op.create_table(
        "backfill",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("made", MOMENT, nullable=False),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("down", NUMBER, nullable=False),
        sa.Column("concurrency", NUMBER),
        sa.Column("made_by", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("begun", MOMENT),
        sa.Column("stopped", MOMENT),
        sa.Column("ended", MOMENT),
        sa.Column("todo", NUMBER, nullable=False),
        sa.Column("asked", NUMBER, nullable=False),
        sa.Column("done", NUMBER, nullable=False),
        sa.Column("failed", NUMBER, nullable=False),
        sa.Column("removed", NUMBER, nullable=False),
    )
    _add_partial_index("backfill_going_on", "backfill", "number", where="begun IS NOT NULL AND ended IS NULL")
    op.create_table(
        "backfill_target",
        sa.Column("backfill", NUMBER, sa.ForeignKey("backfill.number"), primary_key=True),
        sa.Column("place", NUMBER, primary_key=True),
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("wave", NUMBER, nullable=False),
        sa.Column("waits", NUMBER, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempt", NUMBER, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "backfill_target_backfill_consumer_target_key", "backfill_target", ["backfill", "consumer", "target_key"]
    )
    _add_partial_index(
        "backfill_target_ready", "backfill_target", "backfill", "place", where="state = 'todo' AND waits = 0"
    )
    op.create_table(
        "backfill_edge",
        sa.Column("backfill", NUMBER, sa.ForeignKey("backfill.number"), primary_key=True),
        sa.Column("above", NUMBER, primary_key=True),
        sa.Column("below", NUMBER, primary_key=True),
        sqlite_with_rowid=False,
    )


def _add_partial_index(name: str, table: str, *columns: str, where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, list(columns), sqlite_where=condition, postgresql_where=condition)
