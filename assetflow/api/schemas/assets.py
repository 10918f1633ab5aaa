"""Assets, their partitions, and the graph around them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from assetflow.api.schemas.common import Extra, Page


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
