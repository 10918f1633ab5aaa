"""The answers about watchers."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from assetflow.api.schemas.common import Page


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
