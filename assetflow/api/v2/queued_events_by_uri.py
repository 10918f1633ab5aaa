"""Queued events by URI, as Airflow 2 had them: the URI is percent-encoded in the path."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from assetflow.api.airflow_shapes import QueuedEventOut, QueuedEventsOut
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, Text, TheBackend, TheReader
from assetflow.api.v2.airflow_terms import DagId, consumer_of
from assetflow.api.v2.queues import GONE, Before, OfDag, QueueRequest, entry, queue_answer
from assetflow.operations.lookup import Selection, find_uri

router = APIRouter(tags=["Airflow 2: queued events"], route_class=EtagRoute)

Uri = Annotated[
    Text,
    Path(min_length=1, description="The asset's URI, percent-encoded.", examples=["s3://shop/orders"]),
]


def of_uri(uri: Uri, reader: TheReader, before: Before = None) -> QueueRequest:
    return QueueRequest(f"uri: `{uri}`", Selection(uri=find_uri(reader, uri)), before)


def of_dag_and_uri(dag_id: DagId, uri: Uri, reader: TheReader, before: Before = None) -> QueueRequest:
    which = Selection(consumer_of(reader, dag_id), find_uri(reader, uri))
    return QueueRequest(f"dag_id: `{dag_id}` and uri: `{uri}`", which, before)


OfUri = Annotated[QueueRequest, Depends(of_uri)]
OfDagAndUri = Annotated[QueueRequest, Depends(of_dag_and_uri)]


@router.get("/assets/queuedEvent/{uri:path}", response_model=QueuedEventsOut, responses=answers(404))
def get_asset_queued_events(asked: OfUri, reader: TheReader) -> Json:
    """Get queued asset events for an asset."""
    return queue_answer(asked.found(reader))


@router.delete(
    "/assets/queuedEvent/{uri:path}", status_code=204, response_class=Response, responses=answers(404) | GONE
)
def delete_asset_queued_events(asked: OfUri, backend: TheBackend) -> Response:
    """Delete queued asset events for an asset."""
    return asked.remove(backend)


@router.get("/dags/{dag_id}/assets/queuedEvent", response_model=QueuedEventsOut, responses=answers(404))
def get_dag_queued_events(asked: OfDag, reader: TheReader) -> Json:
    """Get queued asset events for a Dag."""
    return queue_answer(asked.found(reader))


@router.delete(
    "/dags/{dag_id}/assets/queuedEvent", status_code=204, response_class=Response, responses=answers(404) | GONE
)
def delete_dag_queued_events(asked: OfDag, backend: TheBackend) -> Response:
    """Delete queued asset events for a Dag."""
    return asked.remove(backend)


@router.get("/dags/{dag_id}/assets/queuedEvent/{uri:path}", response_model=QueuedEventOut, responses=answers(404))
def get_dag_queued_event(asked: OfDagAndUri, reader: TheReader) -> Json:
    """Get a queued asset event for a Dag."""
    return Json(entry(asked.found(reader)[0]))


@router.delete(
    "/dags/{dag_id}/assets/queuedEvent/{uri:path}",
    status_code=204,
    response_class=Response,
    responses=answers(404) | GONE,
)
def delete_dag_queued_event(asked: OfDagAndUri, backend: TheBackend) -> Response:
    """Delete a queued asset event for a Dag."""
    return asked.remove(backend)
