"""The schemas of statuses, versions and plans. The core defines their fields."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from assetflow.api.schemas.common import Page
from assetflow.api.schemas.consumers import CauseOut

State = Literal["fresh", "stale", "missing", "source", "unknown"]


class StatusCause(BaseModel):
    kind: Literal["missing", "data", "code", "dependency"]
    uri: str
    partition_key: str | None
    read: str | None = Field(description="The version that was read; of `code`, the code version that made it.")
    now: str | None = Field(description="The newest version.")
    since: datetime | None
    words: str


class StatusOut(BaseModel):
    uri: str
    partition_key: str | None
    state: State
    outdated: bool = Field(description="It is not fresh, or something is not that it was made from.")
    causes: list[StatusCause]
    counts: dict[State, int] | None = Field(description="Of an asset with keys: how many keys are in which state.")
    producer: str | None
    freshness: Literal["pass", "warn", "fail", "unknown"] | None = Field(
        description="The state of its freshness policy; null without a policy, and of one partition, as the next four."
    )
    data_time: datetime | Literal["current"] | None = Field(description="Up to when it holds all data.")
    lag: float | None = Field(description="How old its data is, now or at the last deadline, in seconds.")
    feasible: bool | None = Field(description="Whether the flows that make it are quick enough to hold its policy.")
    why: str | None = Field(description="Why the state of its policy is not known now; null if it is.")


class ReadVersionOut(BaseModel):
    uri: str
    partition_key: str | None
    read: str | None = Field(description="The version that was read; null if none was.")
    read_recorded: datetime | None
    now: str | None = Field(description="The newest version.")
    now_recorded: datetime | None
    same: bool


class DataStepOut(BaseModel):
    uri: str
    name: str
    partition_key: str | None
    data_time: datetime | Literal["current"] = Field(description="Its data time as it was read.")
    source: bool


class AssetExplanationOut(StatusOut):
    reads: list[ReadVersionOut] = Field(description="What it is made from, at most 100.")
    data_path: list[DataStepOut] = Field(
        description="From the asset to the source that its data time follows from; empty if it was never made, and of "
        "one partition."
    )


class StatusesPage(Page):
    items: list[StatusOut]


class VersionOut(BaseModel):
    event_id: UUID
    sequence: int
    partition_key: str | None
    data_version: str
    code_version: str | None
    recorded: datetime
    confirms: bool = Field(description="Its task skipped: the version stayed, and is up to date.")
    producer: str | None
    flow_run_id: UUID | None
    flow_run_name: str | None
    read: dict[str, int] = Field(description="Each input, with the sequence up to which it was read.")


class VersionsPage(Page):
    items: list[VersionOut]


class PlannedTargetOut(BaseModel):
    target_key: str | None
    verdict: str = Field(description="`run`, or what holds it back.")
    words: str
    looked_at: str = Field(description="When it is looked at next, in words.")
    look: datetime | None = Field(description="The same, if only time has to pass.")


class PlannedConsumerOut(BaseModel):
    consumer: str
    schedule: str
    words: str
    targets: list[PlannedTargetOut] = Field(description="Those that are not up to date, at most 50.")
    counts: dict[str, int]
    total_targets: int = Field(description="How many it has, also those that are up to date.")


class PlanPage(Page):
    items: list[PlannedConsumerOut]


class Freshness(BaseModel):
    uri: str
    state: Literal["pass", "warn", "fail", "unknown"]
    since: datetime | None = Field(description="Since when the asset has been in this state.")
    why: str | None = Field(description="Why its state is not known now; null if it is.")
    data_time: datetime | Literal["current"] | None = Field(description="Up to when the asset has all data (8.12).")
    lag: float | None = Field(description="Seconds between the data time and now, or the last deadline.")
    maximum_lag: float = Field(description="The seconds that the policy allows.")
    policy: str
    producer: str | None
    due: datetime | None = Field(description="When the producer has to start by its policy (8.14).")
    feasible: bool = Field(description="False if the flows that make the asset take too long (8.15).")
    feasibility: str | None


class FreshnessPage(Page):
    items: list[Freshness]


class FreshnessChange(BaseModel):
    number: int
    id: UUID = Field(description="The id of the event in Prefect.")
    uri: str
    state: Literal["pass", "warn", "fail"]
    at: datetime
    data_time: datetime | Literal["current"] | None
    lag: float | None
    producer: str | None
    flow_run_id: UUID | None = Field(description="The last run of the producer that assetflow started.")
    causes: list[CauseOut]
    words: str


class FreshnessChangesPage(Page):
    items: list[FreshnessChange]


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
