"""Timers: up to which time each consumer with a timetable has its runs. Contract 6.1."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table of timers."""
    op.create_table(
        "timer",
        sa.Column("consumer", NUMBER, nullable=False),
        sa.Column("timetable", sa.Text(), nullable=False),
        sa.Column("reached", sa.String(32), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("inherited", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["consumer"], ["consumer.id"], name="timer_consumer_fkey"),
        sa.PrimaryKeyConstraint("consumer", name="timer_pkey"),
    )
