"""Queued events by URI, as Airflow 2 had them: the URI is percent-encoded in the path."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from assetflow.api.backend import TheBackend, TheReader
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.airflow import QueuedEventOut, QueuedEventsOut
from assetflow.api.v2.params import DagId
from assetflow.api.v2.queued_events import GONE, Before, one_answer, queue_answer, remove
from assetflow.api.v2.words import consumer_of
from assetflow.ledger.lookup import find_uri
from assetflow.ledger.reader import Reader

router = APIRouter(tags=["Airflow 2: queued events"], route_class=EtagRoute)

Uri = Annotated[
    str,
    Path(min_length=1, max_length=1500, description="The asset's URI, percent-encoded.", examples=["s3://shop/orders"]),
]


@router.get("/assets/queuedEvent/{uri:path}", response_model=QueuedEventsOut, responses=answers(404))
def get_asset_queued_events(uri: Uri, reader: TheReader, before: Before = None) -> Json:
    """Get queued asset events for an asset."""
    wanted = find_uri(reader, uri)
    found = [each for each in reader.catalog.queued(uri=wanted) if before is None or each.since < before]
    return queue_answer(found, f"uri: `{uri}`")


@router.delete(
    "/assets/queuedEvent/{uri:path}", status_code=204, response_class=Response, responses=answers(404) | GONE
)
def delete_asset_queued_events(uri: Uri, backend: TheBackend, before: Before = None) -> Response:
    """Delete queued asset events for an asset."""
    return remove(backend, None, find_uri(backend.ledger.reader, uri), before, f"uri: `{uri}`")


@router.get("/dags/{dag_id}/assets/queuedEvent", response_model=QueuedEventsOut, responses=answers(404))
def get_dag_queued_events(dag_id: DagId, reader: TheReader, before: Before = None) -> Json:
    """Get queued asset events for a Dag."""
    number = consumer_of(reader, dag_id).consumer.id
    found = [each for each in reader.catalog.queued(consumer=number) if before is None or each.since < before]
    return queue_answer(found, f"dag_id: `{dag_id}`")


@router.delete(
    "/dags/{dag_id}/assets/queuedEvent", status_code=204, response_class=Response, responses=answers(404) | GONE
)
def delete_dag_queued_events(dag_id: DagId, backend: TheBackend, before: Before = None) -> Response:
    """Delete queued asset events for a Dag."""
    number = consumer_of(backend.ledger.reader, dag_id).consumer.id
    return remove(backend, number, None, before, f"dag_id: `{dag_id}`")


@router.get("/dags/{dag_id}/assets/queuedEvent/{uri:path}", response_model=QueuedEventOut, responses=answers(404))
def get_dag_queued_event(dag_id: DagId, uri: Uri, reader: TheReader, before: Before = None) -> Json:
    """Get a queued asset event for a Dag."""
    number, wanted = _of(reader, dag_id, uri)
    found = reader.catalog.queued(consumer=number, uri=wanted)
    earlier = [each for each in found if before is None or each.since < before]
    return one_answer(earlier, f"dag_id: `{dag_id}` and uri: `{uri}`")


@router.delete(
    "/dags/{dag_id}/assets/queuedEvent/{uri:path}",
    status_code=204,
    response_class=Response,
    responses=answers(404) | GONE,
)
def delete_dag_queued_event(dag_id: DagId, uri: Uri, backend: TheBackend, before: Before = None) -> Response:
    """Delete a queued asset event for a Dag."""
    number, wanted = _of(backend.ledger.reader, dag_id, uri)
    return remove(backend, number, wanted, before, f"dag_id: `{dag_id}` and uri: `{uri}`")


def _of(reader: Reader, dag: str, uri: str) -> tuple[int, str]:
    return consumer_of(reader, dag).consumer.id, find_uri(reader, uri)
