"""List the deadlines that were missed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Page, Text, ThePage, TheReader
from assetflow.ledger.records import MissedDeadlineRecord
from assetflow.operations.lookup import find_consumer

router = APIRouter(tags=["consumers"], route_class=EtagRoute)


@router.get("/deadlines/missed", responses=answers(404))
def list_missed_deadlines(
    reader: TheReader,
    page: ThePage,
    consumer: Annotated[Text | None, Query(description="Of this consumer: `flow/deployment`, or an id.")] = None,
) -> Page[MissedDeadlineRecord]:
    """List the deadlines that passed without a decision, newest first (9.8)."""
    number = None if consumer is None else find_consumer(reader, consumer).consumer.id
    found = reader.deadlines.missed(consumer=number, before=page.number, limit=page.limit)
    return page.after(found, lambda each: each.number)
