"""Consumers, their queues, pending partitions and missed deadlines."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from assetflow.api.requests import Text
from assetflow.api.schemas.common import Extra, Page
from assetflow.api.schemas.events import DecisionMade, EventSummary


class CauseOut(BaseModel):
    kind: Literal["missing", "data", "code", "dependency", "freshness", "backfill"]
    uri: str | None
    partition_key: str | None


class DecisionListed(BaseModel):
    number: int
    id: UUID
    consumer: str
    deployment_id: UUID
    target_key: str | None
    made: datetime
    kind: str
    status: Literal["waiting", "launched", "ended", "undeliverable"]
    flow_run_id: UUID | None
    run_state: str | None = Field(description="The state in which the run ended, as Prefect names it.")
    launched: datetime | None
    ended: datetime | None
    attempts: int
    error: str | None
    causes: list[CauseOut] = Field(description="Why an Eager flow asked for the run (8.5).")
    decided: datetime
    opening: datetime | None
    by_deadline: bool
    scheduled: datetime | None


class DecisionsPage(Page):
    items: list[DecisionListed]


class RunOut(BaseModel):
    """The run of a decision, as far as it has come."""

    flow_run_id: UUID | None
    status: Literal["waiting", "launched", "ended", "undeliverable"]
    run_state: str | None
    launched: datetime | None
    ended: datetime | None
    error: str | None
    attempts: int
    words: str


class DecisionTold(BaseModel):
    id: UUID
    consumer: str
    deployment_id: UUID
    target_key: str | None
    made: datetime
    words: str
    condition: str | None
    completed_by: UUID | None = Field(description="The event with which the condition first held.")
    consumed: int = Field(description="How many events it consumed.")
    events: list[EventSummary]
    run: RunOut


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


class LastDecision(BaseModel):
    id: UUID
    made: datetime
    status: Literal["waiting", "launched", "ended", "undeliverable"]
    flow_run_id: UUID | None


class RefusedDeploymentOut(BaseModel):
    """A deployment whose declaration cannot be used. The consumer that it had before stays as it was (4.4)."""

    deployment_id: UUID
    name: str
    error: str
    where: str = Field(description="The deployment with its entrypoint, and what in it.")
    fix: str | None
    rule: str | None = Field(description="The rule of the contract that it breaks.")


class RefusedDeploymentsPage(Page):
    items: list[RefusedDeploymentOut]


class ConsumerListed(BaseModel):
    id: int
    name: str
    deployment_id: UUID
    automation_id: UUID | None
    schedule: str
    assets: int
    updated: int
    queued: int
    pending_partitions: int | None = Field(description="Of a partitioned consumer: how many keys are pending.")
    paused: bool = Field(description="Its automation is switched off.")
    held: bool = Field(description="Its deployment is paused.")
    active: bool = Field(description="It is neither paused nor held.")
    last_decision: LastDecision | None
    refused: RefusedDeploymentOut | None = Field(description="Why its newest declaration cannot be used.")


class ConsumersPage(Page):
    items: list[ConsumerListed]


class Expiry(BaseModel):
    event_id: UUID
    at: datetime


class ConditionRow(BaseModel):
    """A gate or a leaf of a condition; the members of a gate follow it with a greater depth."""

    depth: int
    kind: str
    value: str | None = Field(description="The URI, name or alias of a leaf.")
    label: str
    state: Literal["satisfied", "waiting", "never"]
    words: str
    since: datetime | None
    satisfied_by: UUID | None = Field(description="The event that satisfied a leaf.")
    queued: int | None = Field(description="How many queued events match a leaf.")
    members: int | None = Field(description="How many members a gate has.")
    satisfied_members: int | None
    received: list[str]
    missing: list[str]


class PartitionTold(BaseModel):
    """A pending partition."""

    target_key: str
    holds: bool
    since: datetime | None
    words: str
    queued: int
    received: list[str]
    missing: list[str]
    condition: list[ConditionRow]
    events: list[EventSummary]


class ConsumerTold(BaseModel):
    id: int
    name: str
    deployment_id: UUID
    state: str
    words: str
    notes: list[str]
    paused: bool
    held: bool
    while_paused: Literal["drop", "keep"]
    coalesce: bool
    partitioned: bool
    schedule: str
    holds: bool
    queued: int
    pending_partitions: int | None = Field(description="Of a partitioned consumer: how many keys are pending.")
    condition: list[ConditionRow]
    partitions: list[PartitionTold]
    since: datetime | None
    next_time: datetime | None
    last_decision: DecisionTold | None
    until: datetime | None = Field(description="The latest instant that it waits for.")
    because: list[str] = Field(description="What it waits for, such as `quiet`.")
    waits: dict[str, datetime | None] = Field(description="The same, each with the instant at which that is over.")
    expires: list[Expiry]
    deadline: datetime | None
    at: datetime | None = Field(description="The time that was asked for with `at`.")
    next_decision: DecisionTold | None = Field(description="With `at`: its first decision afterwards.")


class PendingPage(Page):
    items: list[str] = Field(description="The target keys.")


class SwitchedOut(BaseModel):
    name: str
    paused: bool


class RetriedOut(BaseModel):
    consumer: str
    target_key: str | None = Field(description="Null for all targets.")
    decisions: list[DecisionMade] = Field(description="What runs at once; the rest waits for what holds it back.")
    flow_runs: list[UUID] = Field(description="The failed runs that run again in Prefect, each with its updates.")


class RemovedOut(BaseModel):
    removed: int


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


class RunStarted(BaseModel):
    flow_run_id: UUID
    flow_run_name: str
    partition_key: str | None


class ConsumerRun(RunStarted):
    """A run of a consumer that Prefect starts. It consumes nothing."""

    consumer: str


class MaterializingRun(RunStarted):
    """A run that makes an asset, which Prefect starts. It consumes nothing."""

    uri: str
    producer: str
