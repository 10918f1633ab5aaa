"""Queued events, as Airflow lists and deletes them: one entry for each Dag and asset that has events queued."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from assetflow.api.airflow_shapes import QueuedEventOut, QueuedEventsOut
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, TheBackend, TheReader
from assetflow.api.v2.airflow_terms import AssetId, DagId, asset_numbered, consumer_of
from assetflow.api.v2.queues import GONE, Before, OfDag, QueueRequest, entry, queue_answer
from assetflow.operations.lookup import Selection

router = APIRouter(tags=["Airflow: queued events"], route_class=EtagRoute)


def of_asset(asset_id: AssetId, reader: TheReader, before: Before = None) -> QueueRequest:
    return QueueRequest(f"asset_id: `{asset_id}`", Selection(uri=asset_numbered(reader, asset_id).record.uri), before)


def of_both(dag_id: DagId, asset_id: AssetId, reader: TheReader, before: Before = None) -> QueueRequest:
    which = Selection(consumer_of(reader, dag_id), asset_numbered(reader, asset_id).record.uri)
    return QueueRequest(f"dag_id: `{dag_id}` and asset_id: `{asset_id}`", which, before)


OfAsset = Annotated[QueueRequest, Depends(of_asset)]
OfBoth = Annotated[QueueRequest, Depends(of_both)]


@router.get("/assets/{asset_id}/queuedEvents", response_model=QueuedEventsOut, responses=answers(404))
def get_asset_queued_events(asked: OfAsset, reader: TheReader) -> Json:
    """Get queued asset events for an asset."""
    return queue_answer(asked.found(reader))


@router.delete(
    "/assets/{asset_id}/queuedEvents", status_code=204, response_class=Response, responses=answers(404) | GONE
)
def delete_asset_queued_events(asked: OfAsset, backend: TheBackend) -> Response:
    """Delete queued asset events for an asset."""
    return asked.remove(backend)


@router.get("/dags/{dag_id}/assets/queuedEvents", response_model=QueuedEventsOut, responses=answers(404))
def get_dag_asset_queued_events(asked: OfDag, reader: TheReader) -> Json:
    """Get queued asset events for a Dag."""
    return queue_answer(asked.found(reader))


@router.delete(
    "/dags/{dag_id}/assets/queuedEvents", status_code=204, response_class=Response, responses=answers(404) | GONE
)
def delete_dag_asset_queued_events(asked: OfDag, backend: TheBackend) -> Response:
    """Delete queued asset events for a Dag."""
    return asked.remove(backend)


@router.get("/dags/{dag_id}/assets/{asset_id}/queuedEvents", response_model=QueuedEventOut, responses=answers(404))
def get_dag_asset_queued_event(asked: OfBoth, reader: TheReader) -> Json:
    """Get a queued asset event for a Dag."""
    return Json(entry(asked.found(reader)[0]))


@router.delete(
    "/dags/{dag_id}/assets/{asset_id}/queuedEvents",
    status_code=204,
    response_class=Response,
    responses=answers(404) | GONE,
)
def delete_dag_asset_queued_event(asked: OfBoth, backend: TheBackend) -> Response:
    """Delete a queued asset event for a Dag."""
    return asked.remove(backend)
