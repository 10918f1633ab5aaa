"""Events, their origins and receipts, and what was refused."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from assetflow.api.schemas.common import Extra, Page


class SourceTaskRun(BaseModel):
    id: UUID
    name: str | None


class SourceFlowRun(BaseModel):
    id: UUID
    name: str | None
    flow_id: UUID | None
    flow_name: str | None
    deployment_id: UUID | None
    deployment_name: str | None
    parameters: Extra | None = Field(description="Null if they were too large to travel with the event.")
    scheduled_time: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None


class OriginOut(BaseModel):
    """Where an event came from."""

    kind: str
    by: str | None
    task_run: SourceTaskRun | None
    flow_run: SourceFlowRun | None
    traceparent: str | None


class PinOut(BaseModel):
    event_id: UUID
    recorded: datetime


class EventOut(BaseModel):
    id: UUID
    sequence: int
    uri: str
    name: str = Field(description="The asset's readable name; its URI if it has none.")
    group: str | None
    asset_extra: Extra
    extra: Extra
    partition_key: str | None
    aliases: list[str]
    metrics: Extra
    code_version: str | None
    data_version: str | None
    inputs: dict[str, int] = Field(description="Each input, with the sequence up to which it was read.")
    read: dict[str, PinOut] = Field(description="Each input, with the newest event that was read.")
    occurred: datetime
    recorded: datetime
    origin: OriginOut


class EventsPage(Page):
    items: list[EventOut]


class EventSummary(BaseModel):
    """The fields of an event that a list shows."""

    id: UUID
    uri: str
    name: str
    partition_key: str | None
    sequence: int | None
    occurred: datetime
    recorded: datetime | None
    source: str = Field(description="Who made it, in words.")


class CountOut(BaseModel):
    count: int


class IdsIn(BaseModel):
    ids: Annotated[list[UUID], Field(max_length=10_000)]


class IdsOut(BaseModel):
    ids: list[UUID]


class ReceiptOut(BaseModel):
    """The outcome of an event for one consumer and target key."""

    consumer: str | None
    target_key: str | None
    status: str
    words: str
    decision_id: UUID | None
    flow_run_id: UUID | None
    by: str | None
    why: str | None
    error: str | None


class ReceiptsPage(Page):
    items: list[ReceiptOut]


class EventTold(BaseModel):
    event: EventOut
    words: str
    total_receipts: int
    receipts: list[ReceiptOut]


class RefusedOut(BaseModel):
    id: UUID
    at: datetime
    error: str
    rule: str | None
    source: str
    payload: Any


class RefusedPage(Page):
    items: list[RefusedOut]
