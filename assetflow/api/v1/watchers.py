"""List watchers, pause and resume them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from assetflow.api.own_shapes import Switched
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Page, Text, TheBackend, ThePage
from assetflow.ledger.records import WatcherRecord
from assetflow.operations.lookup import switch_watcher

router = APIRouter(tags=["assets"], route_class=EtagRoute)

Name = Annotated[Text, Path(max_length=250, description="The watcher.")]


@router.get("/watchers", responses=answers())
def list_watchers(backend: TheBackend, page: ThePage) -> Page[WatcherRecord]:
    """List what updates assets from outside: queues, files, tables and queries, with their states and counts (10.1)."""
    return page.within(backend.ledger.reader.watchers.all())


@router.post("/watchers/{watcher}/pause", responses=answers(404, 415))
def pause_watcher(watcher: Name, backend: TheBackend) -> Switched:
    """Pause a watcher: what is outside stays there until it is resumed."""
    return _switch(backend, watcher, paused=True)


@router.post("/watchers/{watcher}/resume", responses=answers(404, 415))
def resume_watcher(watcher: Name, backend: TheBackend) -> Switched:
    """Resume a paused watcher."""
    return _switch(backend, watcher, paused=False)


def _switch(backend: TheBackend, watcher: str, *, paused: bool) -> Switched:
    switch_watcher(backend, watcher, paused=paused)
    return Switched(watcher, paused)
