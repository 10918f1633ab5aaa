"""Versions of items, what flows read and tried, and why decisions were made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.String(32)


def upgrade() -> None:
    """Add the tables, and the causes of decisions. The tables are filled when the first Eager flow is deployed."""
    op.create_table(
        "data_flow",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("record", sa.Text(), nullable=False),
    )
    op.create_table(
        "item_version",
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("partition_key", sa.String(), primary_key=True),
        sa.Column("sequence", NUMBER, primary_key=True),
        sa.Column("confirms", NUMBER, primary_key=True),
        sa.Column("event", sa.Uuid(), nullable=False),
        sa.Column("data_version", sa.String(), nullable=False),
        sa.Column("recorded", MOMENT, nullable=False),
        sa.Column("consumer", NUMBER),
        sa.Column("pins", sa.Text()),
        sa.Column("code_version", sa.String()),
        sa.Column("started", MOMENT),
        sa.Column("seen", MOMENT),
        sqlite_with_rowid=False,
    )
    op.create_index("item_version_uri_sequence", "item_version", ["uri", "sequence"])
    op.create_table(
        "item",
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("partition_key", sa.String(), primary_key=True),
        sa.Column("sequence", NUMBER, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("item_uri_sequence", "item", ["uri", "sequence"])
    _add_targets()
    _add_runs()
    op.add_column("decision", sa.Column("because", sa.Text(), nullable=False, server_default="[]"))


def _add_targets() -> None:
    op.create_table(
        "reading",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", sa.String(), primary_key=True),
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("source_key", sa.String(), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "target_key",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", sa.String(), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "target",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", sa.String(), primary_key=True),
        sa.Column("tried", sa.Text()),
        sa.Column("waived", sa.Text()),
        sa.Column("failures", NUMBER, nullable=False),
        sa.Column("ended", MOMENT),
        sa.Column("ended_place", NUMBER, nullable=False),
        sa.Column("decision", sa.Uuid()),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("retry_at", MOMENT),
        sa.Column("look", MOMENT),
        sqlite_with_rowid=False,
    )
    op.create_index("target_consumer_verdict", "target", ["consumer", "verdict"])
    _add_partial_index("target_waits", "target", "consumer", where="verdict = 'waits'")
    _add_partial_index("target_look", "target", "look", where="look IS NOT NULL")


def _add_runs() -> None:
    op.create_table(
        "kept_run",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("asked", MOMENT, nullable=False),
        sa.Column("began", MOMENT, nullable=False),
        sa.Column("tried", sa.Text(), nullable=False),
        sa.Column("pins", sa.Text(), nullable=False),
        sa.Column("ended", MOMENT),
        sa.Column("state", sa.String(), nullable=False),
    )
    _add_partial_index("kept_run_open", "kept_run", "consumer", where="ended IS NULL")
    _add_partial_index("kept_run_completed", "kept_run", "consumer", "ended", where="state = 'completed'")


def _add_partial_index(name: str, table: str, *columns: str, where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, list(columns), sqlite_where=condition, postgresql_where=condition)
