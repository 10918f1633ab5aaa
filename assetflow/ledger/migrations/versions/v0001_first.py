"""The first version: every table of contract chapters 1 to 5."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.String(32)


def upgrade() -> None:
    """Make all tables in an empty database."""
    _create_assets()
    _create_events()
    _create_consumers()
    _create_queues()
    _create_decisions()


def _where(condition: str) -> dict[str, Any]:
    """The condition of a partial index, for both databases."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def _create_assets() -> None:
    op.create_table(
        "ledger",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created", MOMENT, nullable=False),
        sa.Column("prefect_api_url", sa.String(), nullable=True),
        sa.Column("last_event", NUMBER, nullable=False),
        sa.Column("last_decision", NUMBER, nullable=False),
        sa.Column("last_consumer", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("number", name="ledger_pkey"),
    )
    op.create_table(
        "asset",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("group", sa.String(), nullable=False),
        sa.Column("extra", sa.Text(), nullable=False),
        sa.Column("first_seen", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="asset_pkey"),
        sa.UniqueConstraint("uri", name="asset_uri_key"),
    )
    op.create_index("asset_group", "asset", ["group"])
    op.create_table(
        "asset_name",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("uri", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["uri"], ["asset.uri"], name="asset_name_uri_fkey"),
        sa.PrimaryKeyConstraint("name", name="asset_name_pkey"),
    )
    op.create_index("asset_name_uri", "asset_name", ["uri"])
    op.create_table(
        "alias",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("first_seen", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="alias_pkey"),
    )
    op.create_table(
        "alias_link",
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["alias"], ["alias.name"], name="alias_link_alias_fkey"),
        sa.ForeignKeyConstraint(["uri"], ["asset.uri"], name="alias_link_uri_fkey"),
        sa.PrimaryKeyConstraint("alias", "uri", name="alias_link_pkey"),
    )
    op.create_index("alias_link_uri", "alias_link", ["uri"])


def _create_events() -> None:
    op.create_table(
        "event",
        sa.Column("sequence", NUMBER, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("recording", sa.Uuid(), nullable=False),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("partition_key", sa.String(), nullable=True),
        sa.Column("occurred", MOMENT, nullable=False),
        sa.Column("recorded", MOMENT, nullable=False),
        sa.Column("extra", sa.Text(), nullable=False),
        sa.Column("metrics", sa.Text(), nullable=False),
        sa.Column("aliases", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("task_run_id", sa.Uuid(), nullable=True),
        sa.Column("flow_run_id", sa.Uuid(), nullable=True),
        sa.Column("code_version", sa.String(), nullable=True),
        sa.Column("data_version", sa.String(), nullable=True),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("asset_name", sa.String(), nullable=False),
        sa.Column("asset_group", sa.String(), nullable=False),
        sa.Column("asset_extra", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["uri"], ["asset.uri"], name="event_uri_fkey"),
        sa.PrimaryKeyConstraint("sequence", name="event_pkey"),
        sa.UniqueConstraint("id", name="event_id_key"),
    )
    op.create_index("event_flow_run", "event", ["flow_run_id"], **_where("flow_run_id IS NOT NULL"))
    op.create_index("event_recording", "event", ["recording"])
    op.create_index("event_uri_sequence", "event", ["uri", "sequence"])
    op.create_table(
        "event_alias",
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("sequence", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["sequence"], ["event.sequence"], name="event_alias_sequence_fkey"),
        sa.PrimaryKeyConstraint("alias", "sequence", name="event_alias_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "refused",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("rule", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="refused_pkey"),
        sa.UniqueConstraint("id", name="refused_id_key"),
    )


def _create_consumers() -> None:
    op.create_table(
        "consumer",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("deployment_id", sa.Uuid(), nullable=False),
        sa.Column("flow_id", sa.Uuid(), nullable=True),
        sa.Column("declaration", sa.Text(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("automation_id", sa.Uuid(), nullable=True),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("removed_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="consumer_pkey"),
    )
    op.create_index("consumer_automation_id", "consumer", ["automation_id"])
    op.create_index(
        "consumer_live_deployment", "consumer", ["deployment_id"], unique=True, **_where("removed_at IS NULL")
    )
    op.create_index("consumer_live_name", "consumer", ["name"], unique=True, **_where("removed_at IS NULL"))
    op.create_table(
        "consumer_token",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("consumer", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["consumer"], ["consumer.id"], name="consumer_token_consumer_fkey"),
        sa.PrimaryKeyConstraint("kind", "value", "consumer", name="consumer_token_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("consumer_token_consumer", "consumer_token", ["consumer"])
    op.create_table(
        "edge",
        sa.Column("deployment_id", sa.Uuid(), nullable=False),
        sa.Column("direction", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("deployment_id", "direction", "kind", "value", name="edge_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("edge_kind_value", "edge", ["kind", "value"])


def _create_queues() -> None:
    op.create_table(
        "receipt",
        sa.Column("sequence", NUMBER, nullable=False),
        sa.Column("consumer", NUMBER, nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("decision", NUMBER, nullable=True),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["sequence"], ["event.sequence"], name="receipt_sequence_fkey"),
        sa.PrimaryKeyConstraint("sequence", "consumer", "target_key", name="receipt_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_index("receipt_decision", "receipt", ["decision"], **_where("decision IS NOT NULL"))
    op.create_index("receipt_queued", "receipt", ["consumer", "target_key", "sequence"], **_where("status = 'queued'"))
    op.create_table(
        "pending",
        sa.Column("consumer", NUMBER, nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("source_key", sa.String(), nullable=False),
        sa.Column("count", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["consumer"], ["consumer.id"], name="pending_consumer_fkey"),
        sa.PrimaryKeyConstraint("consumer", "target_key", "uri", "source_key", name="pending_pkey"),
        sqlite_with_rowid=False,
    )


def _create_decisions() -> None:
    op.create_table(
        "decision",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("consumer", NUMBER, nullable=False),
        sa.Column("deployment_id", sa.Uuid(), nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("made", MOMENT, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("flow_run_id", sa.Uuid(), nullable=True),
        sa.Column("launched", MOMENT, nullable=True),
        sa.Column("ended", MOMENT, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("run_state", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["consumer"], ["consumer.id"], name="decision_consumer_fkey"),
        sa.PrimaryKeyConstraint("number", name="decision_pkey"),
        sa.UniqueConstraint("id", name="decision_id_key"),
    )
    op.create_index("decision_consumer_number", "decision", ["consumer", "number"])
    op.create_index("decision_flow_run_id", "decision", ["flow_run_id"])
    op.create_index("decision_in_progress", "decision", ["status", "number"], **_where("ended IS NULL"))
    op.create_index("decision_open", "decision", ["consumer", "target_key"], **_where("ended IS NULL"))
    op.create_index("decision_undeliverable", "decision", ["number"], **_where("status = 'undeliverable'"))
    op.create_table(
        "lease",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("holder", sa.Uuid(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("renewed", MOMENT, nullable=False),
        sa.Column("expires", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="lease_pkey"),
    )
    op.create_table(
        "cursor",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="cursor_pkey"),
    )
