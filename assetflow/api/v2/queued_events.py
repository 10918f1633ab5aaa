"""Queued events, as Airflow lists and deletes them: one entry for each Dag and asset that has events queued.

As in Airflow, nothing queued is a 404. Pending partitions are no part of it: they are removed only by naming consumer
and key (3.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response

from assetflow.api.backend import Backend, TheBackend, TheReader
from assetflow.api.paging import Moment
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.airflow import QueuedEventOut, QueuedEventsOut
from assetflow.api.v2.params import AssetId, DagId
from assetflow.api.v2.words import asset_numbered, consumer_of, dag_id
from assetflow.core.explanation.words import iso
from assetflow.errors import UnknownEvent
from assetflow.ledger.catalog import QueuedAsset

router = APIRouter(tags=["Airflow: queued events"], route_class=EtagRoute)

Before = Annotated[Moment | None, Query(description="Only what was recorded before this time.")]
GONE = {204: {"description": "They are removed"}}


@router.get("/assets/{asset_id}/queuedEvents", response_model=QueuedEventsOut, responses=answers(404))
def get_asset_queued_events(asset_id: AssetId, reader: TheReader, before: Before = None) -> Json:
    """Get queued asset events for an asset."""
    uri = asset_numbered(reader, asset_id).record.uri
    return queue_answer(_earlier(reader.catalog.queued(uri=uri), before), f"asset_id: `{asset_id}`")


@router.delete(
    "/assets/{asset_id}/queuedEvents", status_code=204, response_class=Response, responses=answers(404) | GONE
)
def delete_asset_queued_events(asset_id: AssetId, backend: TheBackend, before: Before = None) -> Response:
    """Delete queued asset events for an asset."""
    uri = asset_numbered(backend.ledger.reader, asset_id).record.uri
    return remove(backend, None, uri, before, f"asset_id: `{asset_id}`")


@router.get("/dags/{dag_id}/assets/queuedEvents", response_model=QueuedEventsOut, responses=answers(404))
def get_dag_asset_queued_events(dag_id: DagId, reader: TheReader, before: Before = None) -> Json:
    """Get queued asset events for a Dag."""
    number = consumer_of(reader, dag_id).consumer.id
    return queue_answer(_earlier(reader.catalog.queued(consumer=number), before), f"dag_id: `{dag_id}`")


@router.delete(
    "/dags/{dag_id}/assets/queuedEvents", status_code=204, response_class=Response, responses=answers(404) | GONE
)
def delete_dag_asset_queued_events(dag_id: DagId, backend: TheBackend, before: Before = None) -> Response:
    """Delete queued asset events for a Dag."""
    number = consumer_of(backend.ledger.reader, dag_id).consumer.id
    return remove(backend, number, None, before, f"dag_id: `{dag_id}`")


@router.get("/dags/{dag_id}/assets/{asset_id}/queuedEvents", response_model=QueuedEventOut, responses=answers(404))
def get_dag_asset_queued_event(dag_id: DagId, asset_id: AssetId, reader: TheReader, before: Before = None) -> Json:
    """Get a queued asset event for a Dag."""
    number, uri = consumer_of(reader, dag_id).consumer.id, asset_numbered(reader, asset_id).record.uri
    found = _earlier(reader.catalog.queued(consumer=number, uri=uri), before)
    return one_answer(found, f"dag_id: `{dag_id}` and asset_id: `{asset_id}`")


@router.delete(
    "/dags/{dag_id}/assets/{asset_id}/queuedEvents",
    status_code=204,
    response_class=Response,
    responses=answers(404) | GONE,
)
def delete_dag_asset_queued_event(
    dag_id: DagId, asset_id: AssetId, backend: TheBackend, before: Before = None
) -> Response:
    """Delete a queued asset event for a Dag."""
    reader = backend.ledger.reader
    number, uri = consumer_of(reader, dag_id).consumer.id, asset_numbered(reader, asset_id).record.uri
    return remove(backend, number, uri, before, f"dag_id: `{dag_id}` and asset_id: `{asset_id}`")


def queue_answer(found: Sequence[QueuedAsset], of: str) -> Json:
    """What is queued, in Airflow's shape.

    Raises:
        UnknownEvent: nothing is.
    """
    if not found:
        raise _nothing(of)
    return Json({"queued_events": [_to_json(each) for each in found], "total_entries": len(found)})


def one_answer(found: Sequence[QueuedAsset], of: str) -> Json:
    """The one entry of a Dag and an asset. Raises as `queue_answer`."""
    if not found:
        raise _nothing(of)
    return Json(_to_json(found[0]))


def remove(backend: Backend, consumer: int | None, uri: str | None, before: datetime | None, of: str) -> Response:
    """Remove what is queued; an answer without content.

    Raises:
        UnknownEvent: nothing is.
    """
    removed = backend.ledger.writer.remove_queued(
        consumer, uri=uri, before=before, by="api", why="deleted through the API", now=backend.now()
    )
    if not removed:
        raise _nothing(of)
    return Response(status_code=204)


def _earlier(found: Sequence[QueuedAsset], before: datetime | None) -> list[QueuedAsset]:
    return [each for each in found if before is None or each.since < before]


def _to_json(each: QueuedAsset) -> dict[str, object]:
    dag = dag_id(each.consumer_name)
    return {
        "asset_id": each.asset,
        "dag_id": dag,
        "dag_display_name": each.consumer_name,
        "created_at": iso(each.since),
    }


def _nothing(of: str) -> UnknownEvent:
    return UnknownEvent(f"queued events with {of} were not found", where="path")
