"""What the clock remembers of timed consumers, and the deadlines that were missed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.String(32)


def upgrade() -> None:
    """Add the tables, tell at which instant each decision was made, and when, and when each consumer was deployed."""
    op.create_table(
        "consumer_clock",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("gone_through", MOMENT, nullable=False),
        sa.Column("opened", MOMENT),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("deadlines", sa.Text(), nullable=False),
        sa.Column("due", MOMENT),
    )
    op.create_index("consumer_clock_due", "consumer_clock", ["due"])
    op.create_table(
        "queue_clock",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", sa.String(), primary_key=True),
        sa.Column("gone_through", MOMENT),
        sa.Column("closed", MOMENT),
        sa.Column("overdue", sa.Boolean(), nullable=False),
        sa.Column("told", NUMBER, nullable=False),
        sa.Column("deferred", sa.Boolean(), nullable=False),
        sa.Column("due", MOMENT),
    )
    op.create_index("queue_clock_due", "queue_clock", ["due"])
    op.create_table(
        "missed_deadline",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("due", MOMENT, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("then", sa.String(), nullable=False),
        sa.Column("queued", NUMBER, nullable=False),
        sa.Column("missing", sa.Text(), nullable=False),
        sa.Column("announced", MOMENT),
    )
    op.create_index("missed_deadline_consumer", "missed_deadline", ["consumer"])
    where = sa.text("announced IS NULL")
    op.create_index(
        "missed_deadline_to_announce", "missed_deadline", ["number"], sqlite_where=where, postgresql_where=where
    )
    op.add_column("decision", sa.Column("opening", MOMENT))
    op.add_column("decision", sa.Column("by_deadline", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("decision", sa.Column("decided", MOMENT, nullable=False, server_default=""))
    op.add_column("decision", sa.Column("scheduled", MOMENT))
    op.add_column("consumer", sa.Column("deployed", MOMENT))
    op.execute("UPDATE decision SET decided = made")
    op.create_index("decision_consumer_target_key_number", "decision", ["consumer", "target_key", "number"])
