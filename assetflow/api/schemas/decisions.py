"""Decisions and their runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from assetflow.api.requests import Text
from assetflow.api.schemas.common import Page
from assetflow.api.schemas.events import EventSummary


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
