"""List the deadlines that were missed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.backend import TheReader
from assetflow.api.paging import LARGEST, Limit, Text, following, page
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.own import MissedDeadlinesPage
from assetflow.operations.lookup import find_consumer

router = APIRouter(tags=["consumers"], route_class=EtagRoute)


@router.get("/deadlines/missed", response_model=MissedDeadlinesPage, responses=answers(404))
def list_missed_deadlines(
    reader: TheReader,
    consumer: Annotated[Text | None, Query(description="Of this consumer: `flow/deployment`, or an id.")] = None,
    before: Annotated[int | None, Query(ge=0, le=LARGEST, description="The `next` of the previous page.")] = None,
    limit: Limit = 100,
) -> Json:
    """List the deadlines that passed without a decision, newest first (9.8)."""
    number = None if consumer is None else find_consumer(reader, consumer).consumer.id
    found = reader.deadlines.missed(consumer=number, before=before, limit=limit)
    items = [each.as_json() for each in found]
    return Json(page(items, following(items, limit, "number")))
