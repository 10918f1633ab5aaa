"""The schemas of assetflow's own API. The core defines the fields of explanations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from assetflow.api.paging import Moment, Text

Extra = dict[str, Any]


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

    uri: Text = Field(description="The asset's URI.")
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
        description="The version of the data: an update with the same version as the one before is no new data.",
    )


class EventsIn(BaseModel):
    """Updates to record. All valid ones become one recording, followed by one pass of the consumers."""

    # The route validates each event on its own, so that a wrong one does not keep the others out.
    events: Annotated[list[SkipValidation[EventIn]], Field(min_length=1, max_length=10_000)]


class ItemOut(BaseModel):
    """The status of one update: `recorded`, `known` (it was recorded before), or `refused` with the reason."""

    index: int
    status: Literal["recorded", "known", "refused"]
    id: UUID | None = None
    uri: str | None = None
    sequence: int | None = None
    code: str | None = None
    field: str | None = None
    error: str | None = None
    fix: str | None = None
    rule: str | None = None


class ObservedItemIn(BaseModel):
    """The version of a partition key, or, without a key, of the asset."""

    model_config = ConfigDict(extra="forbid")

    data_version: Annotated[Text, Field(max_length=250)]
    partition_key: Annotated[Text, Field(max_length=250)] | None = None


class ObservationIn(BaseModel):
    """What was seen of a source."""

    model_config = ConfigDict(extra="forbid")

    items: Annotated[list[ObservedItemIn], Field(min_length=1, max_length=10_000)]
    by: Annotated[Text, Field(max_length=250)] = Field(default="", description="Who observed it.")


class ObservedOut(BaseModel):
    """The updates that an observation is: those items whose version was not the newest one."""

    uri: str
    recorded: list[EventOut]
    decisions: list[DecisionMade]
    warnings: list[str]


class DecisionMade(BaseModel):
    decision: UUID
    consumer: str
    target_key: str | None


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
    """What an action would lead to. Nothing is written."""

    starts: list[RunToStart]
    waits: list[StillWaiting]
    refused: list[str] = Field(description="A sentence for each consumer that would refuse an update.")
    known: bool = Field(description="The updates are recorded already: nothing would change.")
    further: list[str] = Field(description="The flows further down, which those runs may start when they complete.")
    more: bool = Field(description="There are more flows further down than these.")
    updates: list[str] = Field(description="The assets that would be updated.")


class Open(BaseModel):
    """An object that may have more fields than the schema names."""

    model_config = ConfigDict(extra="allow")


class EventOut(Open):
    """An event, without its empty fields."""

    id: UUID
    uri: str
    occurred: datetime
    origin: Extra
    sequence: int
    recorded: datetime
    name: str | None = None
    group: str | None = None
    extra: Extra | None = None
    asset_extra: Extra | None = None
    partition_key: str | None = None
    aliases: list[str] | None = None
    metrics: Extra | None = None


class Page(BaseModel):
    next: int | str | None = Field(description="The cursor of the next page; null on the last one.")


class EventsPage(Page):
    items: list[EventOut]


class CountOut(BaseModel):
    count: int


class IdsIn(BaseModel):
    ids: Annotated[list[UUID], Field(max_length=10_000)]


class IdsOut(BaseModel):
    ids: list[UUID]


class ReceiptOut(Open):
    status: str
    words: str


class ReceiptsOut(Page):
    items: list[ReceiptOut]


class EventTold(BaseModel):
    event: EventOut
    words: str
    total_receipts: int
    receipts: list[ReceiptOut]


class RefusedOut(BaseModel):
    id: UUID
    at: datetime
    reason: str
    rule: str | None
    source: str
    payload: Any


class RefusedPage(Page):
    items: list[RefusedOut]


class AssetOut(BaseModel):
    id: int
    uri: str
    name: str
    names: list[str]
    group: str
    extra: Extra
    aliases: list[str]
    first_seen: datetime
    last_event: int | None
    last_update: datetime | None
    producers: list[str]
    readers: list[str]
    consumers: list[str]


class AssetsPage(Page):
    items: list[AssetOut]
    total: int


class PartitionOut(BaseModel):
    key: str
    events: int
    last_event: int
    last_update: datetime


class PartitionsPage(Page):
    items: list[PartitionOut]


class GraphOut(BaseModel):
    start: str
    nodes: list[Extra]
    edges: list[Extra]
    truncated: bool


class PictureNode(BaseModel):
    """A box of the picture: a node, a folded group, or the folded ends of a hub."""

    id: str
    kind: Literal["asset", "alias", "name", "flow", "group", "more"]
    value: str = Field(description="The URI, alias, name, flow or group.")
    name: str
    state: str
    at: datetime | None = Field(
        description="When an asset was updated, or the last run of a flow ended or was decided."
    )
    count: int = Field(description="How many nodes it stands for.")
    flows: int = Field(description="How many of them are flows.")
    level: int = Field(description="The distance from the focus in edges; negative on the way up.")
    more: bool = Field(description="It has neighbours that are not shown.")
    x: int
    y: int


class PictureEdge(BaseModel):
    source: str
    target: str
    kinds: list[Literal["schedules", "produces", "reads", "links"]]


class PictureOut(BaseModel):
    focus: str | None
    nodes: list[PictureNode]
    edges: list[PictureEdge]
    truncated: bool


class ConsumerListed(Open):
    id: int
    name: str
    deployment_id: UUID
    schedule: str
    assets: int
    updated: int
    queued: int
    pending_keys: int | None
    paused: bool = Field(description="Its automation is switched off.")
    held: bool = Field(description="Its deployment is paused.")
    active: bool = Field(description="It is neither paused nor held.")


class ConsumersPage(Page):
    items: list[ConsumerListed]


class ConsumerTold(Open):
    consumer: str
    id: int
    state: str
    words: str
    schedule: str
    queued: int
    condition: list[Extra]
    partitions: list[Extra]


class PartitionTold(Open):
    target_key: str
    holds: bool
    words: str
    condition: list[Extra]
    events: list[Extra]


class PendingOut(Page):
    items: list[str]


class SwitchedOut(BaseModel):
    consumer: str
    paused: bool


class RemovedOut(BaseModel):
    removed: int


class DecisionListed(BaseModel):
    number: int
    decision: UUID
    consumer: str
    deployment: UUID
    target_key: str | None
    made: datetime
    kind: str
    status: Literal["waiting", "launched", "ended", "undeliverable"]
    flow_run: UUID | None
    state: str
    launched: datetime | None
    ended: datetime | None
    attempts: int
    error: str
    decided: datetime
    opening: datetime | None
    by_deadline: bool
    scheduled: datetime | None


class DecisionsPage(Page):
    items: list[DecisionListed]


class MissedDeadlineListed(BaseModel):
    number: int
    consumer: str
    target_key: str | None
    due: datetime
    at: datetime = Field(description="When the deadline was looked at: later than `due` after a pause or a redeploy.")
    then: Literal["alert", "run", "skip"]
    queued: int
    missing: list[str] = Field(description="The assets and aliases of which no update was queued.")


class MissedDeadlinesPage(Page):
    items: list[MissedDeadlineListed]


class DecisionTold(Open):
    decision: UUID
    consumer: str
    words: str
    consumed: int
    events: list[Extra]
    run: Extra


class ReplayedOut(BaseModel):
    decision: UUID
    status: Literal["waiting"]


class GiveUpIn(BaseModel):
    """The reason to give up a decision."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"why": "its extra cannot be sent"}]})

    why: Annotated[Text, Field(min_length=1, max_length=1000)] = Field(description="The reason; the decision shows it.")
    by: Annotated[Text, Field(max_length=250)] = Field(default="api", description="Who gives it up.")


class GivenUpOut(BaseModel):
    decision: UUID
    status: Literal["undeliverable"]


class HealthOut(BaseModel):
    status: Literal["ok"]


class ReadyOut(BaseModel):
    status: Literal["ready", "not ready"]
    problems: list[str]
    evaluator: Extra | None


class LedgerOut(BaseModel):
    id: UUID
    created: datetime
    prefect_api_url: str | None
    assets: int
    consumers: int
    last_event: int
    last_decision: int
    waiting: int
    running: int
    undeliverable: int
    refused: int
    oldest_waiting: datetime | None


class NameOut(BaseModel):
    name: str
    uri: str
