"""What clients send to assetflow's own paths, and the answers that only they give.

The other answers are facts of the core, of the ledger and of operations.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from assetflow.api.requests import Moment, Text
from assetflow.core.explain import ShownEvent
from assetflow.core.shapes import shape
from assetflow.core.values.consumers import DecisionMade
from assetflow.ledger.records import LedgerCounts

Extra = dict[str, Any]
MOST_KEYS = 100_000


class AssetHidden(BaseModel):
    uri: str
    hidden: bool


class NameOut(BaseModel):
    name: str
    uri: str


class BackfillIn(BaseModel):
    """The backfill of an asset."""

    model_config = ConfigDict(extra="forbid")

    asset: Text = Field(description="The asset whose maker runs: its URI or its name.", examples=["s3://shop/orders"])
    down: bool = Field(default=False, description="Run the flows that read it, too, step by step down.")
    target_keys: Annotated[list[Text], Field(max_length=MOST_KEYS)] = Field(
        default_factory=list[str], description="The target keys of the maker; all known ones by default."
    )
    from_: Text | None = Field(
        default=None,
        alias="from",
        description="Instead of target keys, with `to`: the time of the first.",
        examples=["2026-11"],
    )
    to: Text | None = Field(default=None, description="The time of the last key, which is included.", examples=["2026"])
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=4, description="How many of its runs go on at most at a time."
    )
    by: Text = Field(default="", description="Who asks for it.")
    why: Text = Field(default="", description="The reason, which the list of backfills shows.")


class ReplayedOut(BaseModel):
    id: UUID
    status: Literal["waiting"]


class GiveUpIn(BaseModel):
    """The reason to give up a decision."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"why": "its extra cannot be sent"}]})

    why: Annotated[Text, Field(min_length=1, max_length=1000)] = Field(description="The reason; the decision shows it.")
    by: Annotated[Text, Field(max_length=250)] = Field(default="api", description="Who gives it up.")


class GivenUpOut(BaseModel):
    id: UUID
    status: Literal["undeliverable"]


class RemovedOut(BaseModel):
    removed: int


class RunIn(BaseModel):
    """The run to start."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"parameters": {"full": True}}]})

    parameters: Extra = Field(default_factory=dict, description="The parameters of the flow.")
    partition_key: Annotated[Text, Field(min_length=1, max_length=250)] | None = Field(
        default=None, description="The key that the run is for."
    )
    name: Annotated[Text, Field(min_length=1, max_length=250)] | None = Field(
        default=None,
        description="The run's name, and the idempotency key: the same request again starts no second run.",
    )


class AssetRunIn(RunIn):
    """The run that makes the asset."""

    producer: Text | None = Field(
        default=None, description="The flow to run, as `flow/deployment`, if several make the asset."
    )


@shape
class Switched:
    """A consumer or a watcher that was paused or resumed."""

    name: str
    paused: bool


@shape
class RunStarted:
    """A run that Prefect starts. It consumes nothing."""

    flow_run_id: UUID
    flow_run_name: str
    partition_key: str | None


@shape
class ConsumerRun(RunStarted):
    """A run of a consumer that Prefect starts. It consumes nothing."""

    consumer: str


@shape
class MaterializingRun(RunStarted):
    """A run that makes an asset, which Prefect starts. It consumes nothing."""

    uri: str
    producer: str


class CountOut(BaseModel):
    count: int


class IdsIn(BaseModel):
    ids: Annotated[list[UUID], Field(max_length=10_000)]


class IdsOut(BaseModel):
    ids: list[UUID]


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


class ObservedOut(BaseModel):
    """The updates that an observation is: those items whose version was not the newest one."""

    uri: str
    events: list[ShownEvent]
    decisions: list[DecisionMade]
    warnings: list[str]


class RecordedOut(BaseModel):
    recorded: int
    known: int
    refused: int
    items: list[ItemOut]
    decisions: list[DecisionMade]
    warnings: list[str]


class HealthOut(BaseModel):
    status: Literal["ok"]


class EvaluatorOut(BaseModel):
    host: str
    pid: int
    since: datetime
    renewed: datetime


class ReadyOut(BaseModel):
    status: Literal["ready", "not ready"]
    problems: list[str]
    evaluator: EvaluatorOut | None


@shape
class LedgerOut(LedgerCounts):
    """The ledger, and what is in it; `oldest_waiting` is when the oldest decision that waits for its run was made."""

    id: UUID
    created: datetime
    prefect_api_url: str | None
