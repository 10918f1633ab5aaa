"""Events, their origins and receipts, and what was refused."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from assetflow.api.requests import Moment, Text
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


class EventIn(BaseModel):
    """An update to record."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"uri": "s3://shop/orders", "extra": {"rows": 12}, "id": "orders-2026-11-20"},
                {"uri": "s3://shop/hourly", "partition_key": "2026-11-20T08", "aliases": ["late"]},
            ]
        },
    )

    uri: Text = Field(description="The asset's URI, or its name.")
    name: Text | None = Field(default=None, description="A readable name of the asset.")
    group: Annotated[Text, Field(max_length=250)] = Field(default="", description="A label that lists sort by.")
    extra: Extra = Field(default_factory=dict, description="Details of the update: at most 64 KiB and 50 levels.")
    partition_key: Annotated[str, Field(max_length=250)] | None = None
    aliases: Annotated[list[Text], Field(max_length=100)] = Field(default_factory=list[str])
    id: Annotated[Text, Field(min_length=1, max_length=250)] | None = Field(
        default=None,
        description="Idempotency key: the event's id, or any text to derive the id from.",
    )
    occurred: Moment | None = Field(default=None, description="When the asset was updated; now if not given.")
    by: Annotated[Text, Field(max_length=250)] = Field(default="", description="Who reports the update.")
    data_version: Annotated[Text, Field(max_length=250)] | None = Field(
        default=None,
        description="The version of the data: an update with the same version as the one before is not new data.",
    )


class EventsIn(BaseModel):
    """Updates to record. All valid ones become one recording, followed by one pass of the consumers."""

    # The route validates each event on its own, so that a wrong one does not keep the others out.
    events: Annotated[list[SkipValidation[EventIn]], Field(min_length=1, max_length=10_000)]


class ItemOut(BaseModel):
    """The status of one update: `recorded`, `known` (it was recorded before), or `refused` with the reason."""

    index: int
    status: Literal["recorded", "known", "refused"]
    id: UUID | None
    uri: str | None
    sequence: int | None
    code: str | None
    where: str | None = Field(description="The field that is wrong.")
    error: str | None
    fix: str | None
    rule: str | None


class ObservedItemIn(BaseModel):
    """The version of a partition key, or, without a key, of the asset."""

    model_config = ConfigDict(extra="forbid")

    data_version: Annotated[Text, Field(max_length=250)]
    partition_key: Annotated[Text, Field(max_length=250)] | None = None


class ObservationIn(BaseModel):
    """An observation of a source."""

    model_config = ConfigDict(extra="forbid")

    items: Annotated[list[ObservedItemIn], Field(min_length=1, max_length=10_000)]
    by: Annotated[Text, Field(max_length=250)] = Field(default="", description="Who observed it.")


class DecisionMade(BaseModel):
    id: UUID
    consumer: str
    target_key: str | None


class ObservedOut(BaseModel):
    """The updates that an observation is: those items whose version was not the newest one."""

    uri: str
    events: list[EventOut]
    decisions: list[DecisionMade]
    warnings: list[str]


class RecordedOut(BaseModel):
    recorded: int
    known: int
    refused: int
    items: list[ItemOut]
    decisions: list[DecisionMade]
    warnings: list[str]


class RunToStart(BaseModel):
    """A run that would start, with the number of updates that it would consume."""

    consumer: str
    target_key: str | None
    updates: int


class StillWaiting(BaseModel):
    """A queue that would still wait."""

    consumer: str
    target_key: str | None
    words: str = Field(description="For what, as in `still needs customers`.")


class PreviewOut(BaseModel):
    """The runs that an action would start. Nothing is written."""

    starts: list[RunToStart]
    waits: list[StillWaiting]
    refused: list[str] = Field(description="A sentence for each consumer that would refuse an update.")
    known: bool = Field(description="The updates are recorded already: nothing would change.")
    further: list[str] = Field(description="The flows further down, which those runs may start when they complete.")
    more: bool = Field(description="There are more flows further down than these.")
    updates: list[str] = Field(description="The assets that would be updated.")
