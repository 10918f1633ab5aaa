"""List and explain decisions and runs, replay a decision or give one up."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from assetflow.api.own_shapes import GivenUpOut, GiveUpIn, ReplayedOut
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, Moment, Page, Text, TheBackend, ThePage, TheReader
from assetflow.core.explain import DecisionExplanation
from assetflow.errors import places
from assetflow.ledger.read.explanations import decision_explanation, run_explanation
from assetflow.ledger.records import DecisionRecord, DecisionStatus
from assetflow.operations import runs_by_hand
from assetflow.operations.lookup import decision_with, find_consumer
from assetflow.operations.needs import ListedRun, Need, list_runs

router = APIRouter(tags=["decisions"], route_class=EtagRoute)


@router.get("/decisions", responses=answers(404))
def list_decisions(
    reader: TheReader,
    page: ThePage,
    consumer: Annotated[Text | None, Query(description="Of this consumer: `flow/deployment`, or an id.")] = None,
    status: DecisionStatus | None = None,
) -> Page[DecisionRecord]:
    """List decisions, newest first, with their runs."""
    number = None if consumer is None else find_consumer(reader, consumer).consumer.id
    found = reader.decisions.find(consumer=number, status=status, before=page.number, limit=page.limit)
    return page.after(found, lambda each: each.number)


@router.get("/decisions/{decision_id}", responses=answers(404))
def explain_decision(decision_id: UUID, reader: TheReader) -> DecisionExplanation:
    """Explain a decision: the events that it consumed, the one that completed the condition, and its run.

    Of more than 1,000 events, the answer has the oldest and the one that completed the condition.
    """
    with places(decision="path.decision_id"):
        record = decision_with(reader, decision_id)
    return decision_explanation(reader, record)


@router.post("/decisions/{decision_id}/replay", response_model=ReplayedOut, responses=answers(404, 415))
def replay_decision(decision_id: UUID, backend: TheBackend) -> Json:
    """Make an undeliverable decision wait for its run again (4.6)."""
    runs_by_hand.replay(backend, [decision_id])
    return Json({"id": str(decision_id), "status": "waiting"})


@router.post("/decisions/{decision_id}/give-up", response_model=GivenUpOut, responses=answers(404, 415))
def give_up_decision(decision_id: UUID, wanted: GiveUpIn, backend: TheBackend) -> Json:
    """Give up a decision that waits for its run, so that later decisions of its consumer can go ahead (4.6)."""
    with places(why="body.why"):
        runs_by_hand.give_up(backend, decision_id, by=wanted.by, why=wanted.why)
    return Json({"id": str(decision_id), "status": "undeliverable"})


@router.get("/runs/{flow_run_id}", responses=answers(404))
def explain_run(flow_run_id: UUID, reader: TheReader) -> DecisionExplanation:
    """Explain why a flow run was started: return the decision that started it."""
    return run_explanation(reader, flow_run_id)


@router.get("/runs", responses=answers(404))
def list_ended_runs(
    reader: TheReader,
    page: ThePage,
    failed: Annotated[bool, Query(description="Only runs that failed or crashed.")] = False,
    since: Annotated[Moment | None, Query(description="Ended at this time or later.")] = None,
    until: Annotated[Moment | None, Query(description="Ended before this time.")] = None,
    flow: Annotated[Text | None, Query(description="Of this flow and deployment: `flow/deployment`.")] = None,
    target_key: Annotated[Text | None, Query(description="For this target key.")] = None,
) -> Page[ListedRun]:
    """List the runs of consumers and makers that have ended, newest first, whoever started them (4.8)."""
    of = {"failed": failed, "since": since, "until": until, "flow": flow, "target_key": target_key}
    found = list_runs(reader, **of, before=page.number, limit=page.limit)  # type: ignore[arg-type]
    return page.after(found, lambda each: each.number)


@router.get("/needs", responses=answers())
def get_needs(backend: TheBackend) -> list[Need]:
    """List what needs a person: what failed and was not made good, and what does not work (4.9).

    What keeps everything waiting comes first, then that for which most flows wait further down.
    """
    return backend.needs()
