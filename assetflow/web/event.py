"""One event: where it came from, and what became of it for each consumer."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Request, Response

from assetflow.api.backend import TheReader
from assetflow.core.redaction import redacted
from assetflow.ledger.explanations import event_explanation
from assetflow.web.pages import ThePages

router = APIRouter()


@router.get("/events/{event_id}")
def show_event(request: Request, pages: ThePages, reader: TheReader, event_id: UUID) -> Response:
    """An event with its receipts, in the words that the command line and the API use."""
    told = event_explanation(reader, event_id)
    return pages.show(request, "event.html", fragment="receipts", told=told, event=redacted(told.event))
