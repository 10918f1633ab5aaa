"""The tables of a ledger."""

from __future__ import annotations

from collections.abc import Iterable
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


def _create(name: str, *columns: sa.Column[Any], indexes: Iterable[dict[str, Any]] = (), **options: Any) -> None:
    op.create_table(name, *columns, **options)
    # Those in a table are created in any order, and between equally good ones SQLite takes one by the order.
    for index in indexes:
        op.create_index(table_name=name, **index)


def _index(name: str, *columns: str, where: str = "", unique: bool = False) -> dict[str, Any]:
    partial = {"sqlite_where": sa.text(where), "postgresql_where": sa.text(where)} if where else {}
    return {"index_name": name, "columns": list(columns), "unique": unique, **partial}


def _create_assets() -> None:
    _create(
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
    _create(
        "asset",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("uri", sa.String(), nullable=False, unique=True),
        sa.Column("group", sa.String(), nullable=False),
        sa.Column("extra", sa.Text(), nullable=False),
        sa.Column("first_seen", MOMENT, nullable=False),
        indexes=[_index("asset_group", "group")],
    )
    _create(
        "asset_name",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("uri", sa.String(), sa.ForeignKey("asset.uri"), nullable=False),
        indexes=[_index("asset_name_uri", "uri")],
    )
    _create(
        "hidden_asset",
        sa.Column("uri", sa.String(), sa.ForeignKey("asset.uri"), primary_key=True),
        sa.Column("sequence", NUMBER, nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("hidden_by", sa.String(), nullable=False),
    )
    _create(
        "alias",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("first_seen", MOMENT, nullable=False),
    )
    _create(
        "alias_link",
        sa.Column("alias", sa.String(), sa.ForeignKey("alias.name"), primary_key=True),
        sa.Column("uri", sa.String(), sa.ForeignKey("asset.uri"), primary_key=True),
        sa.Column("since", MOMENT, nullable=False),
        indexes=[_index("alias_link_uri", "uri")],
    )
    _create(
        "edge",
        sa.Column("deployment_id", sa.Uuid(), primary_key=True),
        sa.Column("direction", sa.String(), primary_key=True),
        sa.Column("kind", sa.String(), primary_key=True),
        sa.Column("value", sa.String(), primary_key=True),
        sa.Column("learned", sa.Boolean(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        indexes=[_index("edge_kind_value", "kind", "value"), _index("edge_name", "name")],
        sqlite_with_rowid=False,
    )


def _create_events() -> None:
    _create(
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
        indexes=[
            _index("event_flow_run", "flow_run_id", where="flow_run_id IS NOT NULL"),
            _index("event_occurred_sequence", "occurred", "sequence"),
            _index("event_partition", "uri", "partition_key", "sequence", where="partition_key IS NOT NULL"),
            _index("event_recording", "recording"),
            _index("event_uri_sequence", "uri", "sequence"),
        ],
    )
    _create(
        "event_alias",
        sa.Column("alias", sa.String(), primary_key=True),
        sa.Column("sequence", NUMBER, sa.ForeignKey("event.sequence"), primary_key=True),
        indexes=[_index("event_alias_sequence", "sequence")],
        sqlite_with_rowid=False,
    )
    _create(
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
    _create(
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
        indexes=[
            _index("consumer_automation_id", "automation_id"),
            _index("consumer_live_deployment", "deployment_id", unique=True, where="removed_at IS NULL"),
            _index("consumer_live_name", "name", unique=True, where="removed_at IS NULL"),
        ],
    )
    _create(
        "consumer_token",
        sa.Column("kind", sa.String(), primary_key=True),
        sa.Column("value", sa.String(), primary_key=True),
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        indexes=[_index("consumer_token_consumer", "consumer")],
        sqlite_with_rowid=False,
    )
    _create(
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
        indexes=[
            _index("receipt_decision", "decision", where="decision IS NOT NULL"),
            _index("receipt_queued", "consumer", "target_key", "sequence", where="status = 'queued'"),
        ],
        sqlite_with_rowid=False,
    )
    _create(
        "pending",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", KEY, primary_key=True),
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("source_key", KEY, primary_key=True),
        sa.Column("count", NUMBER, nullable=False),
        sqlite_with_rowid=False,
    )
    _create(
        "timer",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("timetable", sa.Text(), nullable=False),
        sa.Column("reached", MOMENT, nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("inherited", sa.String(), nullable=False),
    )


def _create_decisions() -> None:
    _create(
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
        indexes=[
            _index("decision_consumer_number", "consumer", "number"),
            _index("decision_flow_run_id", "flow_run_id"),
            _index("decision_in_progress", "status", "number", where="ended IS NULL"),
            _index("decision_open", "consumer", "target_key", where="ended IS NULL"),
            _index("decision_undeliverable", "number", where="status = 'undeliverable'"),
            _index("decision_without_note", "number", where="noted IS NULL AND flow_run_id IS NOT NULL"),
        ],
    )
    _create(
        "consumer_clock",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("gone_through", MOMENT, nullable=False),
        sa.Column("opened", MOMENT),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("deadlines", sa.Text(), nullable=False),
        sa.Column("due", MOMENT),
        indexes=[_index("consumer_clock_due", "due")],
    )
    _create(
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
        indexes=[_index("queue_clock_due", "due")],
    )
    _create(
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
        indexes=[
            _index("missed_deadline_consumer", "consumer"),
            _index("missed_deadline_to_tell", "number", where="stored IS NULL"),
        ],
    )


def _create_failed_checks() -> None:
    _create(
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
        indexes=[
            _index("failed_checks_uri_number", "uri", "number"),
            _index("failed_checks_at", "at"),
            _index("failed_checks_to_tell", "number", where="stored IS NULL"),
        ],
    )


def _create_ended_runs() -> None:
    _create(
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
        indexes=[
            _index(
                "ended_run_deployment_id_target_key_outcome_ended", "deployment_id", "target_key", "outcome", "ended"
            ),
            _index("ended_run_outcome_number", "outcome", "number"),
            _index("ended_run_ended", "ended"),
            _index("ended_run_to_tell", "number", where="stored IS NULL"),
        ],
    )


def _create_watchers() -> None:
    _create(
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
    _create(
        "watched_asset",
        sa.Column("deployment_id", sa.Uuid(), primary_key=True),
        sa.Column("watcher", sa.String(), primary_key=True),
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("asset", sa.Text(), nullable=False),
        indexes=[_index("watched_asset_uri", "uri"), _index("watched_asset_watcher", "watcher")],
        sqlite_with_rowid=False,
    )
    _create(
        "watcher_item",
        sa.Column("watcher", sa.String(), primary_key=True),
        sa.Column("item", sa.String(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )
    _create(
        "noted_message",
        sa.Column("token", sa.Uuid(), primary_key=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        indexes=[_index("noted_message_source", "source")],
    )


def _create_data_graph() -> None:
    _create(
        "data_flow",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("record", sa.Text(), nullable=False),
    )
    _create(
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
        indexes=[_index("item_version_uri_sequence", "uri", "sequence")],
        sqlite_with_rowid=False,
    )
    _create(
        "item",
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("partition_key", KEY, primary_key=True),
        sa.Column("sequence", NUMBER, nullable=False),
        indexes=[_index("item_uri_sequence", "uri", "sequence")],
        sqlite_with_rowid=False,
    )
    _create(
        "reading",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", KEY, primary_key=True),
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("source_key", KEY, primary_key=True),
        sqlite_with_rowid=False,
    )
    _create(
        "target_key",
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), primary_key=True),
        sa.Column("target_key", KEY, primary_key=True),
        sqlite_with_rowid=False,
    )
    _create(
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
        indexes=[
            _index("target_consumer_verdict", "consumer", "verdict"),
            _index("target_look", "look", where="look IS NOT NULL"),
            _index("target_waits", "verdict", "consumer", where="verdict = 'waits'"),
        ],
        sqlite_with_rowid=False,
    )
    _create(
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
        indexes=[
            _index("kept_run_completed", "consumer", "ended", where="state = 'completed'"),
            _index("kept_run_ended", "ended", where="ended IS NOT NULL"),
            _index("kept_run_open", "consumer", where="ended IS NULL"),
        ],
    )


def _create_policies() -> None:
    _create(
        "earlier_input",
        sa.Column("uri", sa.String(), primary_key=True),
        sa.Column("input", sa.String(), primary_key=True),
        sqlite_with_rowid=False,
    )
    _create(
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
        indexes=[
            _index("policy_due", "due", where="due IS NOT NULL"),
            _index("policy_next_change", "next_change", where="next_change IS NOT NULL"),
        ],
    )
    _create(
        "policy_touch",
        sa.Column("at", MOMENT, primary_key=True),
        sa.Column("uri", sa.String(), primary_key=True),
        sqlite_with_rowid=False,
    )
    _create(
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
        indexes=[
            _index("policy_change_to_tell", "number", where="stored IS NULL"),
            _index("policy_change_uri_number", "uri", "number"),
        ],
    )


def _create_backfills() -> None:
    _create(
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
        indexes=[_index("backfill_going_on", "number", where="begun IS NOT NULL AND ended IS NULL")],
    )
    _create(
        "backfill_target",
        sa.Column("backfill", NUMBER, sa.ForeignKey("backfill.number"), primary_key=True),
        sa.Column("place", NUMBER, primary_key=True),
        sa.Column("consumer", NUMBER, sa.ForeignKey("consumer.id"), nullable=False),
        sa.Column("target_key", sa.String(), nullable=False),
        sa.Column("wave", NUMBER, nullable=False),
        sa.Column("waits", NUMBER, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempt", NUMBER, nullable=False),
        indexes=[
            _index("backfill_target_backfill_consumer_target_key", "backfill", "consumer", "target_key"),
            _index("backfill_target_ready", "backfill", "place", where="state = 'todo' AND waits = 0"),
        ],
        sqlite_with_rowid=False,
    )
    _create(
        "backfill_edge",
        sa.Column("backfill", NUMBER, sa.ForeignKey("backfill.number"), primary_key=True),
        sa.Column("above", NUMBER, primary_key=True),
        sa.Column("below", NUMBER, primary_key=True),
        sqlite_with_rowid=False,
    )


def _create_processes() -> None:
    _create(
        "lease",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("holder", sa.Uuid(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("renewed", MOMENT, nullable=False),
        sa.Column("expires", MOMENT, nullable=False),
    )
    _create(
        "standby",
        sa.Column("holder", sa.Uuid(), primary_key=True),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("renewed", MOMENT, nullable=False),
    )
    _create(
        "cursor",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
    )
    _create(
        "ended_session",
        sa.Column("session", sa.String(), primary_key=True),
        sa.Column("expires", MOMENT, nullable=False),
    )
