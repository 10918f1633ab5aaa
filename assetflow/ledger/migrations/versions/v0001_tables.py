"""The tables of a ledger."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.String(32)
# The greatest keys decide what runs (contract 8.3, 8.8, 8.18), and the locale of a Postgres database may put "a" before
# "B": there, too, these keys have the order of their code points.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make all tables in an empty database."""
    _create_assets()
    _create_events()
    _create_consumers()
    _create_decisions()
    _create_ended_runs()
    _create_failed_checks()
    _create_watchers()
    _create_data_graph()
    _create_policies()
    _create_backfills()
    _create_processes()


def _where(condition: str) -> dict[str, Any]:
    """The condition of a partial index, for both databases."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def _create_assets() -> None:
    op.create_table(
        "ledger",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created", MOMENT, nullable=False),
        sa.Column("prefect_api_url", sa.String()),
        sa.Column("last_event", NUMBER, nullable=False),
        sa.Column("last_decision", NUMBER, nullable=False),
        sa.Column("last_consumer", NUMBER, nullable=False),
        sa.Column("revision", NUMBER, nullable=False),
        sa.Column("rewritten", NUMBER, nullable=False),
    )
    op.create_table(
        "asset",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("uri", sa.String(), nullable=False, unique=True),
        sa.Column("group", sa.String(), nullable=False),
        sa.Column("extra", sa.Text(), nullable=False),
        sa.Column("first_seen", MOMENT, nullable=False),
    )
    # Indexes in a table are created in any order, and between equally good ones SQLite takes one by the order.
    op.create_index("asset_group", "asset", ["group"])
    op.create_table(
        "asset_name",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("uri", sa.String(), sa.ForeignKey("asset.uri"), nullable=False),
    )
    op.create_index("asset_name_uri", "asset_name", ["uri"])
    op.create_table(
        "hidden_asset",
        sa.Column("uri", sa.String(), sa.ForeignKey("asset.uri"), primary_key=True),
        sa.Column("sequence", NUMBER, nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("hidden_by", sa.String(), nullable=False),
    )
    op.create_table(
        "alias",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("first_seen", MOMENT, nullable=False),
    )
    op.create_table(
        "alias_link",
        sa.Column("alias", sa.String(), sa.ForeignKey("alias.name"), primary_key=True),
        sa.Column("uri", sa.String(), sa.ForeignKey("asset.uri"), primary_key=True),
        sa.Column("since", MOMENT, nullable=False),
    )
    op.create_index("alias_link_uri", "alias_link", ["uri"])
    op.create_table(
        "edge",
        sa.Column("deployment_id", sa.Uuid(), primary_key=True),
        sa.Column("direction", sa.String(), primary_key=True),
        sa.Column("kind", sa.String(), primary_key=True),
        sa.Column("value", sa.String(), primary_key=True),
        sa.Column("learned", sa.Boolean(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("edge_kind_value", "edge", ["kind", "value"])
    op.create_index("edge_name", "edge", ["name"])


def _create_events() -> None:
    op.create_table(
        "event",
        sa.Column("sequence", NUMBER, primary_key=True),
        sa.Column("id", sa.Uuid(), nullable=False, unique=True),
        sa.Column("recording", sa.Uuid(), nullable=False),
        sa.Column("uri", sa.String(), sa.ForeignKey("asset.uri"), nullable=False),
        sa.Column("partition_key", sa.String()),
        sa.Column("occurred", MOMENT, nullable=False),
        sa.Column("recorded", MOMENT, nullable=False),
        sa.Column("extra", sa.Text(), nullable=False),
        sa.Column("metrics", sa.Text(), nullable=False),
        sa.Column("aliases", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("task_run_id", sa.Uuid()),
        sa.Column("flow_run_id", sa.Uuid()),
        sa.Column("code_version", sa.String()),
        sa.Column("data_version", sa.String()),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("checks", sa.Text(), nullable=False),
        sa.Column("asset_name", sa.String(), nullable=False),
        sa.Column("asset_group", sa.String(), nullable=False),
        sa.Column("asset_extra", sa.Text(), nullable=False),
    )
    op.create_index("event_flow_run", "event", ["flow_run_id"], **_where("flow_run_id IS NOT NULL"))
    op.create_index("event_occurred_sequence", "event", ["occurred", "sequence"])
    op.create_index(
        "event_partition", "event", ["uri", "partition_key", "sequence"], **_where("partition_key IS NOT NULL")
    )
    op.create_index("event_recording", "event", ["recording"])
    op.create_index("event_uri_sequence", "event", ["uri", "sequence"])
    op.create_table(
        "event_alias",
        sa.Column("alias", sa.String(), primary_key=True),
        sa.Column("sequence", NUMBER, sa.ForeignKey("event.sequence"), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_index("event_alias_sequence", "event_alias", ["sequence"])
    op.create_table(
        "refused",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", sa.Uuid(), nullable=False, unique=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("rule", sa.String()),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
    )


def _create_consumers() -> None:
    op.create_table(
        "consumer",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("deployment_id", sa.Uuid(), nullable=False),
        sa.Column("flow_id", sa.Uuid()),
        sa.Column("declaration", sa.Text(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("automation_id", sa.Uuid()),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("deployed", MOMENT),
        sa.Column("switched_late", sa.Boolean(), nullable=False),
        sa.Column("removed_at", MOMENT),
        sa.Column("listed", sa.Boolean(), nullable=False),
    )
    op.create_index("consumer_automation_id", "consumer", ["automation_id"])
    op.create_index(
        "consumer_live_deployment", "consumer", ["deployment_id"], unique=True, **_where("removed_at IS NULL")
    )
    op.create_index("consumer_live_name", "consumer", ["name"], unique=True, **_where("removed_at IS NULL"))
    op.create_table(
        "consumer_token",
        sa.Column("kind", sa.String(), primary_key=True),
        sa.Column("value", sa.String(), primary_key=True),
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_index("consumer_token_consumer", "consumer_token", ["consumer"])
    op.create_table(
        "receipt",
        sa.Column("sequence", NUMBER, sa.ForeignKey("event.sequence"), primary_key=True),
        sa.Column("consumer", NUMBER, primary_key=True),
        sa.Column("target_key", sa.String(), primary_key=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("decision", NUMBER),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("receipt_decision", "receipt", ["decision"], **_where("decision IS NOT NULL"))
    op.create_index("receipt_queued", "receipt", ["consumer", "target_key", "sequence"], **_where("status = 'queued'"))
    op.create_table(
        "pending",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", KEY, primary_key=True),
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("source_key", KEY, primary_key=True),
        sa.Column("count", NUMBER, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "timer",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("timetable", sa.Text(), nullable=False),
        sa.Column("reached", MOMENT, nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("inherited", sa.String(), nullable=False),
    )


def _create_decisions() -> None:
    op.create_table(
        "decision",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", sa.Uuid(), nullable=False, unique=True),
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), nullable=False),
        sa.Column("deployment_id", sa.Uuid(), nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("made", MOMENT, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("flow_run_id", sa.Uuid()),
        sa.Column("launched", MOMENT),
        sa.Column("ended", MOMENT),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("run_state", sa.String(), nullable=False),
        sa.Column("state_at", MOMENT),
        sa.Column("earlier_ends", sa.Text()),
        sa.Column("noted", MOMENT),
        sa.Column("opening", MOMENT),
        sa.Column("by_deadline", sa.Boolean(), nullable=False),
        sa.Column("decided", MOMENT, nullable=False),
        sa.Column("scheduled", MOMENT),
        sa.Column("because", sa.Text(), nullable=False),
    )
    op.create_index("decision_consumer_number", "decision", ["consumer", "number"])
    op.create_index("decision_flow_run_id", "decision", ["flow_run_id"])
    op.create_index("decision_in_progress", "decision", ["status", "number"], **_where("ended IS NULL"))
    op.create_index("decision_open", "decision", ["consumer", "target_key"], **_where("ended IS NULL"))
    op.create_index("decision_undeliverable", "decision", ["number"], **_where("status = 'undeliverable'"))
    op.create_index(
        "decision_without_note", "decision", ["number"], **_where("noted IS NULL AND flow_run_id IS NOT NULL")
    )
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
        sa.Column("decided", MOMENT),
        sa.Column("started", MOMENT),
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
        sa.Column("posted", MOMENT),
        sa.Column("stored", MOMENT),
    )
    op.create_index("missed_deadline_consumer", "missed_deadline", ["consumer"])
    op.create_index("missed_deadline_to_tell", "missed_deadline", ["number"], **_where("stored IS NULL"))


def _create_failed_checks() -> None:
    op.create_table(
        "failed_checks",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", sa.Uuid(), nullable=False, unique=True),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("partition_key", sa.String()),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("held_back", sa.Boolean(), nullable=False),
        sa.Column("flow_run_id", sa.Uuid()),
        sa.Column("flow_run_name", sa.String(), nullable=False),
        sa.Column("deployment_id", sa.Uuid()),
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("checks", sa.Text(), nullable=False),
        sa.Column("posted", MOMENT),
        sa.Column("stored", MOMENT),
    )
    op.create_index("failed_checks_uri_number", "failed_checks", ["uri", "number"])
    op.create_index("failed_checks_at", "failed_checks", ["at"])
    op.create_index("failed_checks_to_tell", "failed_checks", ["number"], **_where("stored IS NULL"))


def _create_ended_runs() -> None:
    op.create_table(
        "ended_run",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("flow_run_id", sa.Uuid(), nullable=False, unique=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("deployment_id", sa.Uuid(), nullable=False),
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("started_by", sa.String(), nullable=False),
        sa.Column("decision", sa.Uuid()),
        sa.Column("asked", MOMENT, nullable=False),
        sa.Column("began", MOMENT),
        sa.Column("ended", MOMENT, nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("repeated", sa.Boolean(), nullable=False),
        sa.Column("state_id", sa.Uuid(), nullable=False),
        sa.Column("state_at", MOMENT, nullable=False),
        sa.Column("posted", MOMENT),
        sa.Column("stored", MOMENT),
    )
    of_target = ["deployment_id", "target_key", "outcome", "ended"]
    op.create_index("ended_run_deployment_id_target_key_outcome_ended", "ended_run", of_target)
    op.create_index("ended_run_outcome_number", "ended_run", ["outcome", "number"])
    op.create_index("ended_run_ended", "ended_run", ["ended"])
    op.create_index("ended_run_to_tell", "ended_run", ["number"], **_where("stored IS NULL"))


def _create_watchers() -> None:
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
    op.create_index("watched_asset_uri", "watched_asset", ["uri"])
    op.create_index("watched_asset_watcher", "watched_asset", ["watcher"])
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


def _create_data_graph() -> None:
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
        sa.Column("confirms", sa.Boolean(), primary_key=True),
        sa.Column("event", sa.Uuid(), nullable=False),
        sa.Column("data_version", sa.String(), nullable=False),
        sa.Column("recorded", MOMENT, nullable=False),
        sa.Column("consumer", NUMBER),
        sa.Column("pins", sa.Text()),
        sa.Column("code_version", sa.String()),
        sa.Column("started", MOMENT),
        sa.Column("mappers", sa.Text()),
        sa.Column("seen", MOMENT),
        sqlite_with_rowid=False,
    )
    op.create_index("item_version_uri_sequence", "item_version", ["uri", "sequence"])
    op.create_table(
        "item",
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("partition_key", KEY, primary_key=True),
        sa.Column("sequence", NUMBER, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("item_uri_sequence", "item", ["uri", "sequence"])
    op.create_table(
        "reading",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", KEY, primary_key=True),
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("source_key", KEY, primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "target_key",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", KEY, primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "target",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", KEY, primary_key=True),
        sa.Column("tried", sa.Text()),
        sa.Column("waived", sa.Text()),
        sa.Column("failures", NUMBER, nullable=False),
        sa.Column("ended", sa.Text()),
        sa.Column("decision", sa.Uuid()),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("retry_at", MOMENT),
        sa.Column("look", MOMENT),
        sqlite_with_rowid=False,
    )
    op.create_index("target_consumer_verdict", "target", ["consumer", "verdict"])
    op.create_index("target_look", "target", ["look"], **_where("look IS NOT NULL"))
    op.create_index("target_waits", "target", ["verdict", "consumer"], **_where("verdict = 'waits'"))
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
        sa.Column("predecessor", sa.Uuid()),
        sa.Column("ended", MOMENT),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("state_at", MOMENT),
    )
    op.create_index("kept_run_completed", "kept_run", ["consumer", "ended"], **_where("state = 'completed'"))
    op.create_index("kept_run_ended", "kept_run", ["ended"], **_where("ended IS NOT NULL"))
    op.create_index("kept_run_open", "kept_run", ["consumer"], **_where("ended IS NULL"))


def _create_policies() -> None:
    op.create_table(
        "earlier_input",
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("input", sa.String(), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "policy",
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("declaration", sa.Text(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("state_since", MOMENT),
        sa.Column("data_time", sa.Text()),
        sa.Column("due", MOMENT),
        sa.Column("next_change", MOMENT),
        sa.Column("chain", sa.Text(), nullable=False),
    )
    op.create_index("policy_due", "policy", ["due"], **_where("due IS NOT NULL"))
    op.create_index("policy_next_change", "policy", ["next_change"], **_where("next_change IS NOT NULL"))
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
        sa.Column("data_time", sa.Text()),
        sa.Column("lag", sa.Text()),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("causes", sa.Text(), nullable=False),
        sa.Column("maker", NUMBER),
        sa.Column("posted", MOMENT),
        sa.Column("stored", MOMENT),
    )
    op.create_index("policy_change_to_tell", "policy_change", ["number"], **_where("stored IS NULL"))
    op.create_index("policy_change_uri_number", "policy_change", ["uri", "number"])


def _create_backfills() -> None:
    op.create_table(
        "backfill",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("made", MOMENT, nullable=False),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("down", sa.Boolean(), nullable=False),
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
    op.create_index("backfill_going_on", "backfill", ["number"], **_where("begun IS NOT NULL AND ended IS NULL"))
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
    op.create_index(
        "backfill_target_ready", "backfill_target", ["backfill", "place"], **_where("state = 'todo' AND waits = 0")
    )
    op.create_table(
        "backfill_edge",
        sa.Column("backfill", NUMBER, sa.ForeignKey("backfill.number"), primary_key=True),
        sa.Column("above", NUMBER, primary_key=True),
        sa.Column("below", NUMBER, primary_key=True),
        sqlite_with_rowid=False,
    )


def _create_processes() -> None:
    op.create_table(
        "lease",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("holder", sa.Uuid(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("renewed", MOMENT, nullable=False),
        sa.Column("expires", MOMENT, nullable=False),
    )
    op.create_table(
        "standby",
        sa.Column("holder", sa.Uuid(), primary_key=True),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("renewed", MOMENT, nullable=False),
    )
    op.create_table(
        "cursor",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
    )
    op.create_table(
        "ended_session",
        sa.Column("session", sa.String(), primary_key=True),
        sa.Column("expires", MOMENT, nullable=False),
    )
