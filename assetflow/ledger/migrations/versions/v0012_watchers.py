"""Watchers: what they watch, their states and cursors, and the messages that are noted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.String(32)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "watcher",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("changed", MOMENT, nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("begun", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("last_update", MOMENT),
        sa.Column("updates", NUMBER, nullable=False),
        sa.Column("filtered", NUMBER, nullable=False),
        sa.Column("refused", NUMBER, nullable=False),
        sa.Column("lag", NUMBER),
    )
    op.create_table(
        "watched_asset",
        sa.Column("deployment_id", sa.Uuid(), primary_key=True),
        sa.Column("watcher", sa.String(), primary_key=True),
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("asset", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("watched_asset_watcher", "watched_asset", ["watcher"])
    op.create_index("watched_asset_uri", "watched_asset", ["uri"])
    op.create_table(
        "watcher_item",
        sa.Column("watcher", sa.String(), primary_key=True),
        sa.Column("item", sa.String(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "noted_message",
        sa.Column("token", sa.Uuid(), primary_key=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
    )
    op.create_index("noted_message_source", "noted_message", ["source"])
