"""Assets, their partitions, and the graph around them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

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
