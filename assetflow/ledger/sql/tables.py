"""The tables of the ledger.

Where a column is part of a primary key, the consumer 0 and the empty key stand for `None`; neither is a real one. The
one row of `ledger` counts event sequences, decision numbers and consumer ids. So no number is used twice, whatever is
deleted, and events become visible in the order of their sequences on every database.
"""

from __future__ import annotations

from datetime import datetime
from operator import methodcaller
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Index, MetaData, Table, Text
from sqlalchemy.ext.declarative import DeferredReflection
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from assetflow.core.time.timetables import timetable_from_json
from assetflow.core.wire.declarations import causes_from_json, causes_to_json
from assetflow.core.wire.events import checks_from_json, checks_to_json
from assetflow.ledger.sql.bulk import JsonText, KeyText, Number, Stored, UtcTime, stored

_NAMES = {
    "ix": "%(table_name)s_%(column_0_N_name)s",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    "pk": "%(table_name)s_pkey",
}
CAUSES: Any = Stored(causes_to_json, causes_from_json)
CHECKS: Any = Stored(checks_to_json, checks_from_json)
NO_CONSUMER = 0
NO_KEY = ""
# SQLite stores such a table in the order of its primary key, without a second index.
CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Return an index over the rows that meet a condition, which the migrations create.

    The options of the dialects, such as `postgresql_where`, would import the drivers of all databases.
    """
    return Index(name, *columns, unique=unique, info={"where": where})


# With its own registry: a user's SQLModel tables in the same process may have the same names. Statements use the tables
# only, so the classes are never prepared as mappers, and their validators are not built.
class Base(DeferredReflection, SQLModel, registry=registry(metadata=MetaData(naming_convention=_NAMES))):
    """Base of all tables of the ledger: `ASSET_NAME` declares the table `asset_name`."""

    model_config = {"defer_build": True}


def as_table(row: type[Base]) -> Table:
    """Return the table that a class declares."""
    return cast(Table, cast(Any, row).__table__)


@as_table
class LEDGER(Base, table=True):
    """The ledger itself: one row, which every writer locks while it writes.

    `revision` counts the transactions that may change what a state knows: while it stays the same, what was read is
    true. `rewritten` is the revision of the last one that changed more than its events and decisions show.
    """

    number: int = Field(primary_key=True)
    id: UUID
    created: datetime = Field(sa_type=UtcTime)
    prefect_api_url: str | None = None
    last_event: int = Field(default=0, sa_type=Number)
    last_decision: int = Field(default=0, sa_type=Number)
    last_consumer: int = Field(default=0, sa_type=Number)
    revision: int = Field(default=0, sa_type=Number)
    rewritten: int = Field(default=0, sa_type=Number)


@as_table
class ASSET(Base, table=True):
    """An asset, known since the first event, schedule or deployed flow that names it."""

    id: int = Field(primary_key=True, sa_type=Number)
    uri: str = Field(unique=True)
    group: str = Field(default="", index=True)
    extra: dict[str, Any] = Field(default_factory=dict, sa_type=JsonText)
    first_seen: datetime = Field(sa_type=UtcTime)


@as_table
class ASSET_NAME(Base, table=True):
    """A name and the URI that it belongs to. Contract 1.2."""

    name: str = Field(primary_key=True)
    uri: str = Field(foreign_key="asset.uri", index=True)


@as_table
class HIDDEN_ASSET(Base, table=True):
    """An asset that an operator hid, until it has an event after `sequence`. It is shown while a flow declares it."""

    uri: str = Field(primary_key=True, foreign_key="asset.uri")
    sequence: int = Field(sa_type=Number)
    since: datetime = Field(sa_type=UtcTime)
    hidden_by: str = ""


@as_table
class ALIAS(Base, table=True):
    """An alias that an event came through, or that a schedule names."""

    name: str = Field(primary_key=True)
    first_seen: datetime = Field(sa_type=UtcTime)


@as_table
class ALIAS_LINK(Base, table=True):
    """A permanent link from an alias to an asset. Contract 2.4."""

    alias: str = Field(primary_key=True, foreign_key="alias.name")
    uri: str = Field(primary_key=True, foreign_key="asset.uri", index=True)
    since: datetime = Field(sa_type=UtcTime)


@as_table
class EVENT(Base, table=True):
    """An event; `asset_name`, `asset_group` and `asset_extra` as its producer declared them. Contract 7.3."""

    __table_args__ = (
        Index(None, "uri", "sequence"),
        Index(None, "occurred", "sequence"),
        partial_index("event_partition", "uri", "partition_key", "sequence", where="partition_key IS NOT NULL"),
        partial_index("event_flow_run", "flow_run_id", where="flow_run_id IS NOT NULL"),
    )
    sequence: int = Field(primary_key=True, sa_type=Number)
    id: UUID = Field(unique=True)
    recording: UUID = Field(index=True)
    uri: str = Field(foreign_key="asset.uri")
    partition_key: str | None = None
    occurred: datetime = Field(sa_type=UtcTime)
    recorded: datetime = Field(sa_type=UtcTime)
    extra: dict[str, Any] = Field(sa_type=JsonText)
    metrics: dict[str, Any] = Field(sa_type=JsonText)
    aliases: list[str] = Field(sa_type=JsonText)
    origin: dict[str, Any] = Field(sa_type=JsonText)
    task_run_id: UUID | None = None
    flow_run_id: UUID | None = None
    code_version: str | None = None
    data_version: str | None = None
    inputs: dict[str, int] = Field(sa_type=JsonText)
    checks: list[Any] = Field(sa_type=CHECKS)
    asset_name: str
    asset_group: str
    asset_extra: dict[str, Any] = Field(sa_type=JsonText)


@as_table
class EVENT_ALIAS(Base, table=True):
    """An event that came through an alias."""

    __table_args__ = (Index(None, "sequence"), CLUSTERED)
    alias: str = Field(primary_key=True)
    sequence: int = Field(sa_type=Number, primary_key=True, foreign_key="event.sequence")


@as_table
class REFUSED(Base, table=True):
    """Something that was sent as an event and refused, with the reason. Contract 2.6."""

    number: int = Field(primary_key=True, sa_type=Number)
    id: UUID = Field(unique=True)
    payload: Any = Field(sa_type=JsonText)
    reason: str = Field(sa_type=Text)
    rule: str | None = None
    source: str
    at: datetime = Field(sa_type=UtcTime)


@as_table
class CONSUMER(Base, table=True):
    """A consumer. The row of a removed one stays, for its receipts and decisions.

    A flow without a schedule and without policies has a row that is not `listed`: it is in the data graph only.
    """

    __table_args__ = (
        partial_index("consumer_live_name", "name", unique=True, where="removed_at IS NULL"),
        partial_index("consumer_live_deployment", "deployment_id", unique=True, where="removed_at IS NULL"),
    )
    id: int = Field(primary_key=True, sa_type=Number)
    name: str
    deployment_id: UUID
    flow_id: UUID | None = None
    declaration: str = Field(sa_type=Text)
    paused: bool
    held: bool
    automation_id: UUID | None = Field(default=None, index=True)
    since: datetime = Field(sa_type=UtcTime)
    deployed: datetime | None = Field(default=None, sa_type=UtcTime)
    switched_late: bool = False
    removed_at: datetime | None = Field(default=None, sa_type=UtcTime)
    listed: bool = True


@as_table
class CONSUMER_TOKEN(Base, table=True):
    """The index through which an event finds its consumers."""

    __table_args__ = CLUSTERED
    kind: str = Field(primary_key=True)
    value: str = Field(primary_key=True)
    consumer: int = Field(sa_type=Number, primary_key=True, foreign_key="consumer.id", index=True)


@as_table
class RECEIPT(Base, table=True):
    """The outcome of an event for a consumer; `decision` is the number of the decision. Contract 3.5."""

    __table_args__ = (
        partial_index("receipt_queued", "consumer", "target_key", "sequence", where="status = 'queued'"),
        partial_index("receipt_decision", "decision", where="decision IS NOT NULL"),
        CLUSTERED,
    )
    sequence: int = Field(sa_type=Number, primary_key=True, foreign_key="event.sequence")
    consumer: int = Field(sa_type=Number, primary_key=True)
    target_key: str = Field(sa_type=KeyText, primary_key=True)
    status: str
    decision: int | None = Field(default=None, sa_type=Number)
    by: str = ""
    why: str = ""
    error: str = Field(default="", sa_type=Text)
    at: datetime = Field(sa_type=UtcTime)


@as_table
class PENDING(Base, table=True):
    """The short form of a queue: how many events of an asset and key are queued."""

    __table_args__ = CLUSTERED
    consumer: int = Field(sa_type=Number, primary_key=True, foreign_key="consumer.id")
    target_key: str = Field(sa_type=KeyText, primary_key=True)
    uri: str = Field(primary_key=True)
    source_key: str = Field(sa_type=KeyText, primary_key=True)
    count: int = Field(sa_type=Number)


@as_table
class DECISION(Base, table=True):
    """A decision and its run. `ended` is also set if it will never have a run. Contract 4.6.

    `noted` is the time at which its run in Prefect got the note that says why it ran. `made` is the instant of the
    decision, `decided` the time at which the ledger made it: later if no evaluator was running (9.6). `scheduled` is
    when its run starts, if that is not at once (9.11). `because` has the causes for which an Eager flow runs (8.5).
    `state_at` is the time of the newest state of its run that was heard of, by Prefect's clock (4.7). `earlier_ends`
    has each earlier end of a run that was retried, with the time from which the run went on.
    """

    __table_args__ = (
        partial_index("decision_open", "consumer", "target_key", where="ended IS NULL"),
        partial_index("decision_in_progress", "status", "number", where="ended IS NULL"),
        partial_index("decision_undeliverable", "number", where="status = 'undeliverable'"),
        partial_index("decision_without_note", "number", where="noted IS NULL AND flow_run_id IS NOT NULL"),
        Index(None, "consumer", "number"),
    )
    number: int = Field(primary_key=True, sa_type=Number)
    id: UUID = Field(unique=True)
    consumer: int = Field(sa_type=Number, foreign_key="consumer.id")
    deployment_id: UUID
    target_key: str = Field(sa_type=KeyText)
    made: datetime = Field(sa_type=UtcTime)
    kind: str
    status: str
    flow_run_id: UUID | None = Field(default=None, index=True)
    launched: datetime | None = Field(default=None, sa_type=UtcTime)
    ended: datetime | None = Field(default=None, sa_type=UtcTime)
    attempts: int = 0
    error: str = Field(default="", sa_type=Text)
    run_state: str = ""
    state_at: datetime | None = Field(default=None, sa_type=UtcTime)
    earlier_ends: list[list[str]] | None = Field(default=None, sa_type=stored(tuple[tuple[datetime, datetime], ...]))
    noted: datetime | None = Field(default=None, sa_type=UtcTime)
    opening: datetime | None = Field(default=None, sa_type=UtcTime)
    by_deadline: bool = False
    decided: datetime = Field(sa_type=UtcTime)
    scheduled: datetime | None = Field(default=None, sa_type=UtcTime)
    because: list[Any] = Field(sa_type=CAUSES)


@as_table
class ENDED_RUN(Base, table=True):
    """The final state of a flow run of a consumer or a maker, whoever started it. Contract 4.8.

    `state_id` and `state_at` are those of the state, by Prefect's clock. `posted` is when the event of its failure was
    sent to Prefect last, `stored` when Prefect's log was seen to have it, or when it was clear that none is needed.
    """

    __table_args__ = (
        Index(None, "deployment_id", "target_key", "outcome", "ended"),
        Index(None, "outcome", "number"),
        Index(None, "ended"),
        partial_index("ended_run_to_tell", "number", where="stored IS NULL"),
    )
    number: int = Field(primary_key=True, sa_type=Number)
    flow_run_id: UUID = Field(unique=True)
    name: str
    deployment_id: UUID
    flow: str
    target_key: str = Field(sa_type=KeyText)
    state: str
    outcome: str
    started_by: str
    decision: UUID | None = None
    asked: datetime = Field(sa_type=UtcTime)
    began: datetime | None = Field(default=None, sa_type=UtcTime)
    ended: datetime = Field(sa_type=UtcTime)
    error: str = Field(default="", sa_type=Text)
    repeated: bool = False
    state_id: UUID
    state_at: datetime = Field(sa_type=UtcTime)
    posted: datetime | None = Field(default=None, sa_type=UtcTime)
    stored: datetime | None = Field(default=None, sa_type=UtcTime)


@as_table
class FAILED_CHECKS(Base, table=True):
    """Data that failed a check: an update, or data that was held back. Contract 12.6.

    `posted` is when its event was sent to Prefect last, `stored` when Prefect's log was seen to have it.
    """

    __table_args__ = (
        Index(None, "uri", "number"),
        Index(None, "at"),
        partial_index("failed_checks_to_tell", "number", where="stored IS NULL"),
    )
    number: int = Field(primary_key=True, sa_type=Number)
    id: UUID = Field(unique=True)
    uri: str
    name: str
    partition_key: str | None = None
    at: datetime = Field(sa_type=UtcTime)
    held_back: bool
    flow_run_id: UUID | None = None
    flow_run_name: str
    deployment_id: UUID | None = None
    flow: str
    checks: list[Any] = Field(sa_type=CHECKS)
    posted: datetime | None = Field(default=None, sa_type=UtcTime)
    stored: datetime | None = Field(default=None, sa_type=UtcTime)


@as_table
class CONSUMER_CLOCK(Base, table=True):
    """The state of a timed consumer's opening hours (9.7); `due`: when to look at them again."""

    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    gone_through: datetime = Field(sa_type=UtcTime)
    opened: datetime | None = Field(default=None, sa_type=UtcTime)
    is_open: bool = False
    deadlines: list[list[str]] = Field(sa_type=stored(tuple[tuple[datetime, datetime], ...]))
    due: datetime | None = Field(default=None, sa_type=UtcTime, index=True)


@as_table
class QUEUE_CLOCK(Base, table=True):
    """The clock's state of a timed queue (9.6, 9.8, 9.11); `due`: when to look at it again."""

    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    target_key: str = Field(sa_type=KeyText, primary_key=True)
    gone_through: datetime | None = Field(default=None, sa_type=UtcTime)
    closed: datetime | None = Field(default=None, sa_type=UtcTime)
    overdue: bool = False
    told: int = Field(default=0, sa_type=Number)
    deferred: bool = False
    due: datetime | None = Field(default=None, sa_type=UtcTime, index=True)
    decided: datetime | None = Field(default=None, sa_type=UtcTime)
    started: datetime | None = Field(default=None, sa_type=UtcTime)


@as_table
class MISSED_DEADLINE(Base, table=True):
    """A deadline that passed without a decision (9.8).

    `posted` is when its event was sent to Prefect last, `stored` when Prefect's log was seen to have it.
    """

    __table_args__ = (partial_index("missed_deadline_to_tell", "number", where="stored IS NULL"),)
    number: int = Field(primary_key=True, sa_type=Number)
    consumer: int = Field(sa_type=Number, foreign_key="consumer.id", index=True)
    target_key: str = Field(sa_type=KeyText)
    due: datetime = Field(sa_type=UtcTime)
    at: datetime = Field(sa_type=UtcTime)
    then: str
    queued: int = Field(sa_type=Number)
    missing: list[str] = Field(sa_type=Stored(list, tuple))
    posted: datetime | None = Field(default=None, sa_type=UtcTime)
    stored: datetime | None = Field(default=None, sa_type=UtcTime)


@as_table
class TIMER(Base, table=True):
    """The timer of a consumer: all times up to `reached` have their runs. Contract 6.1."""

    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    timetable: dict[str, Any] = Field(sa_type=Stored(methodcaller("as_json"), timetable_from_json))
    reached: datetime = Field(sa_type=UtcTime)
    paused: bool
    held: bool
    inherited: str = ""


@as_table
class EDGE(Base, table=True):
    """What a deployment produces or reads, by its declaration or, if `learned`, by Prefect's events (contract 2.9)."""

    __table_args__ = (Index(None, "kind", "value"), Index(None, "name"), CLUSTERED)
    deployment_id: UUID = Field(primary_key=True)
    direction: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    value: str = Field(primary_key=True)
    learned: bool = Field(default=False, primary_key=True)
    name: str


@as_table
class LEASE(Base, table=True):
    """A lease: at most one row for each role; `number` is that of the role."""

    number: int = Field(primary_key=True)
    holder: UUID
    host: str
    pid: int
    since: datetime = Field(sa_type=UtcTime)
    renewed: datetime = Field(sa_type=UtcTime)
    expires: datetime = Field(sa_type=UtcTime)


@as_table
class STANDBY(Base, table=True):
    """An evaluator that waits for the lease."""

    holder: UUID = Field(primary_key=True)
    host: str
    pid: int
    since: datetime = Field(sa_type=UtcTime)
    renewed: datetime = Field(sa_type=UtcTime)


@as_table
class WATCHER(Base, table=True):
    """A watcher of a deployed asset; `changed` is when it was last declared, paused or resumed.

    `begun` is true once a watcher with a cursor has looked for the first time. Contract 10.1, 10.4.
    """

    name: str = Field(primary_key=True)
    trigger: dict[str, Any] = Field(sa_type=JsonText)
    changed: datetime = Field(sa_type=UtcTime)
    paused: bool = False
    begun: bool = False
    state: str = "new"
    error: str = Field(default="", sa_type=Text)
    since: datetime = Field(sa_type=UtcTime)
    last_update: datetime | None = Field(default=None, sa_type=UtcTime)
    updates: int = Field(default=0, sa_type=Number)
    filtered: int = Field(default=0, sa_type=Number)
    refused: int = Field(default=0, sa_type=Number)
    lag: int | None = Field(default=None, sa_type=Number)


@as_table
class WATCHED_ASSET(Base, table=True):
    """A deployment's declaration that a watcher updates an asset."""

    __table_args__ = (Index(None, "watcher"), Index(None, "uri"), CLUSTERED)
    deployment_id: UUID = Field(primary_key=True)
    watcher: str = Field(primary_key=True)
    uri: str = Field(primary_key=True)
    asset: dict[str, Any] = Field(sa_type=JsonText)


@as_table
class WATCHER_ITEM(Base, table=True):
    """A part of a watcher's cursor: a file that it knows, with its size and time. Contract 10.4, 10.7."""

    __table_args__ = CLUSTERED
    watcher: str = Field(primary_key=True)
    item: str = Field(primary_key=True)
    value: Any = Field(sa_type=JsonText)


@as_table
class NOTED_MESSAGE(Base, table=True):
    """A message without an id that is recorded and may not be acknowledged yet. Contract 10.3."""

    __table_args__ = (Index(None, "source"),)
    token: UUID = Field(primary_key=True)
    source: str
    digest: str


@as_table
class CURSOR(Base, table=True):
    """How far a reader of something outside the ledger has come."""

    name: str = Field(primary_key=True)
    value: Any = Field(sa_type=JsonText)


@as_table
class ENDED_SESSION(Base, table=True):
    """A session of the pages that a user ended by logging out; the row goes when the session would have expired."""

    session: str = Field(primary_key=True)
    expires: datetime = Field(sa_type=UtcTime)
