"""Queued events, as Airflow lists and deletes them: one entry for each Dag and asset that has events queued.

As in Airflow, nothing queued is a 404. Pending partitions are no part of it: they are removed only by naming consumer
and key (3.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

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
from assetflow.ledger.reader import Reader

router = APIRouter(tags=["Airflow: queued events"], route_class=EtagRoute)

Before = Annotated[Moment | None, Query(description="Only what was recorded before this time.")]
GONE = {204: {"description": "They are removed"}}


@dataclass(frozen=True)
class Asked:
    """Which queued events a request is about.

    Attributes:
        words: the same as the request said it.
        consumer, uri: of this consumer, of this asset; none for all.
        before: recorded before this time.
    """

    words: str
    consumer: int | None
    uri: str | None
    before: datetime | None

    def found(self, reader: Reader) -> list[QueuedAsset]:
        """What is queued.

        Raises:
            UnknownEvent: nothing is.
        """
        queued = reader.catalog.queued(consumer=self.consumer, uri=self.uri)
        earlier = [each for each in queued if self.before is None or each.since < self.before]
        if not earlier:
            raise self.nothing()
        return earlier

    def remove(self, backend: Backend) -> Response:
        """Remove what is queued; an answer without content.

        Raises:
            UnknownEvent: nothing is.
        """
        removed = backend.ledger.writer.remove_queued(
            self.consumer, uri=self.uri, before=self.before, by="api", why="deleted through the API", now=backend.now()
        )
        if not removed:
            raise self.nothing()
        return Response(status_code=204)

    def nothing(self) -> UnknownEvent:
        return UnknownEvent(f"queued events with {self.words} were not found", where="path")


def of_asset(asset_id: AssetId, reader: TheReader, before: Before = None) -> Asked:
    return Asked(f"asset_id: `{asset_id}`", None, asset_numbered(reader, asset_id).record.uri, before)


def of_dag(dag_id: DagId, reader: TheReader, before: Before = None) -> Asked:
    return Asked(f"dag_id: `{dag_id}`", consumer_of(reader, dag_id).consumer.id, None, before)


def of_both(dag_id: DagId, asset_id: AssetId, reader: TheReader, before: Before = None) -> Asked:
    number, uri = consumer_of(reader, dag_id).consumer.id, asset_numbered(reader, asset_id).record.uri
    return Asked(f"dag_id: `{dag_id}` and asset_id: `{asset_id}`", number, uri, before)


OfAsset = Annotated[Asked, Depends(of_asset)]
OfDag = Annotated[Asked, Depends(of_dag)]
OfBoth = Annotated[Asked, Depends(of_both)]


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


def queue_answer(found: list[QueuedAsset]) -> Json:
    """What is queued, in Airflow's shape."""
    return Json({"queued_events": [entry(each) for each in found], "total_entries": len(found)})


def entry(each: QueuedAsset) -> dict[str, object]:
    """The entry of a Dag and an asset."""
    return {
        "asset_id": each.asset,
        "dag_id": dag_id(each.consumer_name),
        "dag_display_name": each.consumer_name,
        "created_at": iso(each.since),
    }
