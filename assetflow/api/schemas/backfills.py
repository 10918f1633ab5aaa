"""Backfills of assets: what is asked for, and the answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from assetflow.api.requests import Text
from assetflow.api.schemas.common import Page

MOST_KEYS = 100_000

BackfillState = Literal["preparing", "running", "stopped", "failed", "completed"]
TargetState = Literal["todo", "asked", "done", "failed", "removed"]


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


class Counts(BaseModel):
    todo: int
    asked: int = Field(description="How many run.")
    done: int
    failed: int
    removed: int = Field(description="How many were taken off, because something above them failed.")


class BackfillOut(BaseModel):
    number: int
    uri: str
    down: bool
    state: BackfillState
    made: datetime
    by: str | None
    why: str | None
    concurrency: int | None
    stopped: datetime | None
    ended: datetime | None
    total_targets: int
    counts: Counts


class BackfillsPage(Page):
    items: list[BackfillOut]


class BackfillColumn(BaseModel):
    wave: int = Field(description="How many targets at most run one after the other before these.")
    consumer: str
    counts: Counts


class BackfillTold(BackfillOut):
    waves: list[BackfillColumn]


class BackfillTarget(BaseModel):
    place: int
    wave: int
    consumer: str
    target_key: str | None
    state: TargetState
    waits_for: int = Field(description="How many of the targets directly above it are not done.")
    attempt: int = Field(description="How often it failed and was run again before.")
    decision_id: UUID = Field(description="The id of the decision, also before it is made.")
    flow_run_id: UUID | None
    run_state: str | None
    error: str | None


class BackfillTargetsPage(Page):
    items: list[BackfillTarget]


class PlannedTargets(BaseModel):
    consumer: str
    target_keys: list[str] = Field(description="The first ones; empty for a flow without partitions.")
    total_targets: int = Field(description="How many targets of the consumer run in this wave.")


class BackfillPreview(BaseModel):
    uri: str
    down: bool
    total_targets: int
    waves: list[list[PlannedTargets]] = Field(description="Each runs when those above it in the waves before are done.")
