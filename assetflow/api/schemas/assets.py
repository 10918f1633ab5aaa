"""Assets, their partitions, and the graph around them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from assetflow.api.requests import Text
from assetflow.api.schemas.common import Extra, Page

STATE = (
    "Of an asset `late`, or `fresh`, `outdated`, `stale` or `missing` if it is compared with what it is made from, "
    "else `updated` or `never updated`. Of a flow `paused`, `held`, `never run`, `not scheduled`, or the state of its "
    "last run. Of several nodes their number in words."
)
AT = "When an asset was updated, or the last run of a flow ended or was decided."


class AssetOut(BaseModel):
    id: int
    uri: str
    name: str
    names: list[str]
    group: str | None
    extra: Extra
    aliases: list[str]
    first_seen: datetime
    last_event: int | None
    last_update: datetime | None
    producers: list[str]
    readers: list[str]
    consumers: list[str]
    hidden: bool = Field(description="An operator hid it, and nothing has come since.")


class AssetsPage(Page):
    items: list[AssetOut]
    total: int


class AssetHidden(BaseModel):
    uri: str
    hidden: bool


class NameOut(BaseModel):
    name: str
    uri: str


class PartitionOut(BaseModel):
    partition_key: str
    events: int
    last_event: int
    last_update: datetime


class PartitionsPage(Page):
    items: list[PartitionOut]


class GraphNode(BaseModel):
    id: str
    kind: Literal["asset", "alias", "name", "flow"]
    value: str = Field(description="The URI, alias, name or flow.")
    name: str
    group: str | None
    state: str = Field(description=STATE)
    at: datetime | None = Field(description=AT)
    distance: int = Field(description="The number of edges between it and the focus.")
    more: bool = Field(description="It has neighbours that are not shown.")


class GraphEdge(BaseModel):
    source: str
    target: str
    kind: Literal["schedules", "produces", "reads", "links"]


class GraphOut(BaseModel):
    focus: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    truncated: bool


class PictureNode(BaseModel):
    """A box of the picture: a node, a folded group, or the folded ends of a hub."""

    id: str
    kind: Literal["asset", "alias", "name", "flow", "group", "more"]
    value: str = Field(description="The URI, alias, name, flow or group.")
    name: str
    group: str | None = Field(description="The group of an asset that has one.")
    state: str = Field(description=STATE)
    at: datetime | None = Field(description=AT)
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


class Watcher(BaseModel):
    name: str
    watches: str = Field(description="The trigger in words, without a password.")
    assets: list[str] = Field(description="The URIs of the assets that it updates.")
    state: Literal["new", "watching", "failing", "paused"]
    error: str | None = Field(description="Why it fails.")
    since: datetime = Field(description="Since when it watches or fails.")
    last_update: datetime | None
    updates: int
    filtered: int = Field(description="Messages that its filter did not want (10.5).")
    refused: int = Field(description="Messages and files that cannot be updates (10.2).")
    lag: int | None = Field(description="How much waits at its source, if the source tells.")


class WatchersPage(Page):
    items: list[Watcher]


class WatcherSwitched(BaseModel):
    name: str
    paused: bool
