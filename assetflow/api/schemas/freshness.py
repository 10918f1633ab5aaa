"""The answers about how fresh assets are."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from assetflow.api.schemas.common import Page
from assetflow.api.schemas.decisions import CauseOut


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
