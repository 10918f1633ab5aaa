"""The page of an event: where it came from, and its receipts."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheReader
from assetflow.api.requests import LARGEST
from assetflow.core.values.redaction import redacted
from assetflow.ledger.read.explanations import event_explanation
from assetflow.web.pages import PagePlaces, ThePages, url
from assetflow.web.plots import metric_words
from assetflow.web.prefect_runs import states_address

router = APIRouter()


RECEIPTS = 50


@router.get("/events/{event_id}")
def show_event(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    event_id: UUID,
    offset: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
) -> Response:
    """Show an event with a page of its receipts, in the same words as the command line and the API."""
    told = event_explanation(reader, event_id, limit=RECEIPTS, offset=offset)

    def at(place: int) -> str:
        return url("/events", event_id, offset=place or None)

    return pages.show(
        request,
        "event.html",
        fragment="receipts",
        told=told,
        event=redacted(told.event),
        metric_words=metric_words,
        states=states_address(each.decision.run for each in told.receipts if each.decision is not None),
        here=at(offset),
        places=PagePlaces.of(at, offset, RECEIPTS, told.total),
    )
