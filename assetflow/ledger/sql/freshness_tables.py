"""The tables of chapter 8: versions of items, who reads what, and what was tried.

They hold only what an Eager flow reads or makes, and what is above it. Without such a flow all of them are empty.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index
from sqlmodel import Field

from assetflow.ledger.sql.tables import CLUSTERED, Base, partial_index, table_of
from assetflow.ledger.sql.types import JsonText, Moment, Number


class DataFlowRow(Base, table=True):
    """A flow in the data graph; `record` tells since when it is as it is (8.6)."""

    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    record: dict[str, Any] = Field(sa_type=JsonText)


class ItemVersionRow(Base, table=True):
    """An update of an item, or, with `confirms` 1, the confirmation that it is up to date (8.2).

    `event` is the id of the event, or one of its own for a confirmation. `pins` has for each input the sequence up to
    which it was read; null if nobody said. `seen` is the last observation that saw this version.
    """

    __table_args__ = (Index(None, "uri", "sequence"), CLUSTERED)
    uri: str = Field(primary_key=True)
    partition_key: str = Field(primary_key=True)
    sequence: int = Field(primary_key=True, sa_type=Number)
    confirms: int = Field(primary_key=True, sa_type=Number)
    event: UUID
    data_version: str
    recorded: datetime = Field(sa_type=Moment)
    consumer: int | None = Field(default=None, sa_type=Number)
    pins: dict[str, int] | None = Field(default=None, sa_type=JsonText)
    code_version: str | None = None
    started: datetime | None = Field(default=None, sa_type=Moment)
    seen: datetime | None = Field(default=None, sa_type=Moment)


class ItemRow(Base, table=True):
    """An item, with the place of its newest update."""

    __table_args__ = (Index(None, "uri", "sequence"), CLUSTERED)
    uri: str = Field(primary_key=True)
    partition_key: str = Field(primary_key=True)
    sequence: int = Field(sa_type=Number)


class ReadingRow(Base, table=True):
    """A key of an input that belongs to a target of a partitioned flow (8.3)."""

    __table_args__ = CLUSTERED
    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    target_key: str = Field(primary_key=True)
    uri: str = Field(primary_key=True)
    source_key: str = Field(primary_key=True)


class TargetKeyRow(Base, table=True):
    """A target of a partitioned flow (8.3)."""

    __table_args__ = CLUSTERED
    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    target_key: str = Field(primary_key=True)


class TargetRow(Base, table=True):
    """What is remembered of a target (8.6 to 8.8); `look` is when a failed run has to be looked at again."""

    __table_args__ = (
        Index(None, "consumer", "verdict"),
        partial_index("target_waits", "consumer", where="verdict = 'waits'"),
        partial_index("target_look", "look", where="look IS NOT NULL"),
        CLUSTERED,
    )
    consumer: int = Field(primary_key=True, sa_type=Number, foreign_key="consumer.id")
    target_key: str = Field(primary_key=True)
    tried: dict[str, Any] | None = Field(default=None, sa_type=JsonText)
    waived: dict[str, Any] | None = Field(default=None, sa_type=JsonText)
    failures: int = Field(default=0, sa_type=Number)
    ended: datetime | None = Field(default=None, sa_type=Moment)
    ended_place: int = Field(default=0, sa_type=Number)
    decision: UUID | None = None
    verdict: str = ""
    retry_at: datetime | None = Field(default=None, sa_type=Moment)
    look: datetime | None = Field(default=None, sa_type=Moment)


class KeptRunRow(Base, table=True):
    """A run of a flow in the data graph, by the id of its decision: what it reads, and how it ended (8.6)."""

    __table_args__ = (
        partial_index("kept_run_open", "consumer", where="ended IS NULL"),
        partial_index("kept_run_completed", "consumer", "ended", where="state = 'completed'"),
    )
    id: UUID = Field(primary_key=True)
    consumer: int = Field(sa_type=Number, foreign_key="consumer.id")
    target_key: str
    kind: str
    asked: datetime = Field(sa_type=Moment)
    began: datetime = Field(sa_type=Moment)
    tried: dict[str, Any] = Field(sa_type=JsonText)
    pins: dict[str, dict[str, int]] = Field(sa_type=JsonText)
    ended: datetime | None = Field(default=None, sa_type=Moment)
    state: str = ""


DATA_FLOW = table_of(DataFlowRow)
ITEM_VERSION = table_of(ItemVersionRow)
ITEM = table_of(ItemRow)
READING = table_of(ReadingRow)
TARGET_KEY = table_of(TargetKeyRow)
TARGET = table_of(TargetRow)
KEPT_RUN = table_of(KeptRunRow)
