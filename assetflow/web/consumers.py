"""The list of consumers: how many of their assets are updated, their condition, their last run and the next time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheBackend
from assetflow.api.paging import LARGEST, Text
from assetflow.api.params import Deployment, Flow
from assetflow.core.explanation import next_time
from assetflow.ledger.read.consumers import ConsumerOverview
from assetflow.ledger.read.explanations import consumer_explanation
from assetflow.ledger.records import ConsumerFilter
from assetflow.operations.consumers import consumer_at, list_by_name
from assetflow.web.pages import PagePlaces, ThePages, url
from assetflow.web.refresh import look_again
from assetflow.web.run_states import states_address

router = APIRouter()

ROWS = 50
Show = Literal["", "active", "inactive", "paused", "held", "waiting", "failed"]
_FILTERS: dict[Show, ConsumerFilter] = {
    "": ConsumerFilter(),
    "active": ConsumerFilter(active=True),
    "inactive": ConsumerFilter(active=False),
    "paused": ConsumerFilter(paused=True),
    "held": ConsumerFilter(held=True),
    "waiting": ConsumerFilter(waiting=True),
    "failed": ConsumerFilter(failed=True),
}


@dataclass(frozen=True)
class ConsumerRow:
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
    """Show a page of consumers."""
    reader, now = backend.ledger.reader, backend.now()
    wanted = replace(_FILTERS[show], search=search.strip())
    listed, total = list_by_name(reader, wanted, limit=ROWS, offset=offset)

    def at(place: int) -> str:
        return url("/consumers", search=search, show=show, offset=place or None)

    return pages.show(
        request,
        "consumers.html",
        fragment="list",
        found=[ConsumerRow(each, next_time(each.record.consumer, now)) for each in listed],
        again=look_again(each.last for each in listed),
        states=states_address(each.last for each in listed),
        search=search,
        show=show,
        here=at(offset),
        places=PagePlaces.of(at, offset, ROWS, total),
    )


@router.get("/consumers/{flow}/{deployment}/condition")
def show_condition(
    request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment
) -> Response:
    """Show the condition of a consumer in the list, as a tree with the facts beside each asset."""
    reader = backend.ledger.reader
    told = consumer_explanation(reader, consumer_at(reader, flow, deployment), backend.now(), partitions=1)
    return pages.show(request, "condition.html", fragment="tree", told=told)
