"""The tables of backfills: what was asked for, which targets each has, and what waits for what (8.18)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field

from assetflow.ledger.sql.freshness_tables import CLUSTERED, Base, partial_index, table_of
from assetflow.ledger.sql.types import Number, UtcTime


class BackfillRow(Base, table=True):
    """A backfill.

    `begun` is null until all its targets are written: such a backfill runs nothing. `stopped` is since when it asks for
    nothing more, `ended` when nothing of it was left. The last columns count its targets by state.
    """

    __table_args__ = (partial_index("backfill_going_on", "number", where="begun IS NOT NULL AND ended IS NULL"),)
    number: int = Field(primary_key=True, sa_type=Number)
    made: datetime = Field(sa_type=UtcTime)
    uri: str
    down: int = Field(sa_type=Number)
    concurrency: int | None = Field(default=None, sa_type=Number)
    made_by: str = ""
    why: str = ""
    begun: datetime | None = Field(default=None, sa_type=UtcTime)
    stopped: datetime | None = Field(default=None, sa_type=UtcTime)
    ended: datetime | None = Field(default=None, sa_type=UtcTime)
    todo: int = Field(sa_type=Number)
    asked: int = Field(default=0, sa_type=Number)
    done: int = Field(default=0, sa_type=Number)
    failed: int = Field(default=0, sa_type=Number)
    removed: int = Field(default=0, sa_type=Number)


class BackfillTargetRow(Base, table=True):
    """A target of a backfill, at its place in the order; `waits` of the targets directly above it are not done."""

    __table_args__ = (
        Index(None, "backfill", "consumer", "target_key"),
        partial_index("backfill_target_ready", "backfill", "place", where="state = 'todo' AND waits = 0"),
        CLUSTERED,
    )
    backfill: int = Field(primary_key=True, sa_type=Number, foreign_key="backfill.number")
    place: int = Field(primary_key=True, sa_type=Number)
    consumer: int = Field(sa_type=Number, foreign_key="consumer.id")
    target_key: str
    wave: int = Field(sa_type=Number)
    waits: int = Field(sa_type=Number)
    state: str
    attempt: int = Field(sa_type=Number)


class BackfillEdgeRow(Base, table=True):
    """The target at the place `below` waits for the one at `above`."""

    __table_args__ = CLUSTERED
    backfill: int = Field(primary_key=True, sa_type=Number, foreign_key="backfill.number")
    above: int = Field(primary_key=True, sa_type=Number)
    below: int = Field(primary_key=True, sa_type=Number)


BACKFILL = table_of(BackfillRow)
BACKFILL_TARGET = table_of(BackfillTargetRow)
BACKFILL_EDGE = table_of(BackfillEdgeRow)
