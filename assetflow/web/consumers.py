"""Consumers: how many of their assets were updated, their condition, their last run and the next time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheBackend
from assetflow.api.paging import LARGEST, Text
from assetflow.api.v1.consumers import Deployment, Flow, named_consumer
from assetflow.core.explanation import next_time
from assetflow.ledger.explanations import consumer_explanation
from assetflow.ledger.overview import ConsumerOverview
from assetflow.web.pages import ThePages, url
from assetflow.web.refresh import look_again

router = APIRouter()

ROWS = 50
Show = Literal["", "paused", "running"]


@dataclass(frozen=True)
class Listed:
    """A consumer in the list, with its next time-based run."""

    of: ConsumerOverview
    next_time: datetime | None


@router.get("/consumers")
def list_consumers(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    search: Text = "",
    show: Show = "",
    offset: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
) -> Response:
    """A page of consumers."""
    reader, now = backend.ledger.reader, backend.now()
    paused = {"paused": True, "running": False}.get(show)
    records, total = reader.catalog.consumers(search.strip(), paused=paused, limit=ROWS, offset=offset)

    listed = reader.overviews(records)

    def at(place: int) -> str:
        return url("/consumers", search=search, show=show, offset=place or None)

    return pages.show(
        request,
        "consumers.html",
        fragment="list",
        found=[Listed(each, next_time(each.record.consumer, now)) for each in listed],
        again=look_again(each.last for each in listed),
        total=total,
        search=search,
        show=show,
        here=at(offset),
        before=at(max(0, offset - ROWS)) if offset else "",
        behind=at(offset + ROWS) if offset + ROWS < total else "",
        first=offset + 1,
    )


@router.get("/consumers/{flow}/{deployment}/condition")
def show_condition(
    request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment
) -> Response:
    """The condition of a consumer as a tree, with the facts beside each asset: a part of the list."""
    reader = backend.ledger.reader
    told = consumer_explanation(reader, named_consumer(reader, flow, deployment), backend.now(), partitions=1)
    return pages.show(request, "condition.html", fragment="tree", told=told)
