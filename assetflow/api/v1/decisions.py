"""Decisions and runs: why each exists."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from assetflow.api.backend import TheBackend, TheReader
from assetflow.api.paging import LARGEST, Limit, Text, following, page
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.own import DecisionsPage, DecisionTold, ReplayedOut
from assetflow.errors import UnknownEvent
from assetflow.ledger.explanations import decision_explanation, run_explanation
from assetflow.ledger.lookup import find_consumer
from assetflow.ledger.records import DecisionStatus

router = APIRouter(tags=["decisions"], route_class=EtagRoute)


@router.get("/decisions", response_model=DecisionsPage, responses=answers(404))
def list_decisions(
    reader: TheReader,
    consumer: Annotated[Text | None, Query(description="Of this consumer: `flow/deployment`, or an id.")] = None,
    status: DecisionStatus | None = None,
    before: Annotated[int | None, Query(ge=0, le=LARGEST, description="The `next` of the page before.")] = None,
    limit: Limit = 100,
) -> Json:
    """Decisions, the newest first, with what became of each."""
    number = None if consumer is None else find_consumer(reader, consumer).consumer.id
    found = reader.decisions(consumer=number, status=status, before=before, limit=limit)
    items = [each.as_json() for each in found]
    return Json(page(items, following(items, limit, "number")))


@router.get("/decisions/{decision_id}", response_model=DecisionTold, responses=answers(404))
def explain_decision(decision_id: UUID, reader: TheReader) -> Json:
    """Why a decision was made: what it consumed, which event completed the condition, and its run.

    Of more than 1,000 events the oldest are told, and the one that completed the condition.
    """
    record = reader.decision(decision_id)
    if record is None:
        raise UnknownEvent(f"there is no decision {decision_id}", where="path.decision_id")
    return Json(decision_explanation(reader, record).as_json())


@router.post("/decisions/{decision_id}/replay", response_model=ReplayedOut, responses=answers(404, 415))
def replay(decision_id: UUID, backend: TheBackend) -> Json:
    """Let an undeliverable decision wait for its run again (4.6)."""
    backend.ledger.writer.replay(decision_id)
    backend.on_recorded()
    return Json({"decision": str(decision_id), "status": "waiting"})


@router.get("/runs/{flow_run_id}", response_model=DecisionTold, responses=answers(404))
def explain_run(flow_run_id: UUID, reader: TheReader) -> Json:
    """Why a flow run exists: the decision that started it."""
    return Json(run_explanation(reader, flow_run_id).as_json())
