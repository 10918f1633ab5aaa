"""Queued events, as Airflow lists and deletes them: one entry for each Dag and asset that has events queued.

Airflow names an asset by its number, and Airflow 2 did by its URI. As in Airflow, the answer is 404 if nothing is
queued. These requests leave out pending partitions, which are removed only by consumer and key. Contract 3.7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Path, Query, Response

from assetflow.api.problems import answers
from assetflow.api.requests import Backend, EtagRoute, Json, Moment, Text, TheBackend, TheReader
from assetflow.api.v2.airflow_terms import (
    AssetId,
    DagId,
    QueuedEventOut,
    QueuedEventsOut,
    asset_numbered,
    consumer_of,
    dag_id,
)
from assetflow.core.values.words import iso
from assetflow.errors import UnknownEvent
from assetflow.ledger.read.queues import QueuedAsset
from assetflow.ledger.read.reader import Reader
from assetflow.operations.decisions import remove_queued
from assetflow.operations.lookup import Selection, find_uri

Before = Annotated[Moment | None, Query(description="Only events that were recorded before this time.")]
Uri = Annotated[
    Text,
    Path(min_length=1, description="The asset's URI, percent-encoded.", examples=["s3://shop/orders"]),
]
_GONE = {204: {"description": "They are removed"}}


@dataclass(frozen=True)
class QueueRequest:
    """The queued events that a request is about.

    Attributes:
        words: the ids, as the request gave them.
        which: the consumer and the asset.
        before: only events that were recorded before this time; `None` for all.
    """

    words: str
    which: Selection
    before: datetime | None

    def found(self, reader: Reader) -> list[QueuedAsset]:
        """Return the queued events, counted by consumer and asset.

        Raises:
            UnknownEvent: nothing is queued.
        """
        queued = reader.queues.assets(consumer=self.which.number, uri=self.which.uri)
        earlier = [each for each in queued if self.before is None or each.since < self.before]
        if not earlier:
            raise UnknownEvent(
                f"queued events with {self.words} were not found",
                where="path",
                fix="GET /api/v1/consumers/{flow}/{deployment}/queue lists what is queued for a flow, by partition key "
                "too",
            )
        return earlier

    def remove(self, backend: Backend) -> Response:
        """Remove the queued events, and answer without content. Raises as `found`."""
        self.found(backend.ledger.reader)
        remove_queued(backend, self.which, before=self.before, by="api", why="deleted through the API")
        return Response(status_code=204)


class NamedAsset(NamedTuple):
    """An asset that a request names: how, and its URI."""

    words: str
    uri: str


def by_number(asset_id: AssetId, reader: TheReader) -> NamedAsset:
    return NamedAsset(f"asset_id: `{asset_id}`", asset_numbered(reader, asset_id).record.uri)


def by_uri(uri: Uri, reader: TheReader) -> NamedAsset:
    return NamedAsset(f"uri: `{uri}`", find_uri(reader, uri))


def of_dag(dag_id: DagId, reader: TheReader, before: Before = None) -> QueueRequest:
    return QueueRequest(f"dag_id: `{dag_id}`", Selection(consumer_of(reader, dag_id)), before)


def of_asset(by: Callable[..., NamedAsset]) -> Callable[..., QueueRequest]:
    """Return the dependency that reads a request about an asset, which `by` reads."""

    def read(asset: NamedAsset = Depends(by), before: Before = None) -> QueueRequest:  # noqa: B008 (FastAPI's way)
        return QueueRequest(asset.words, Selection(uri=asset.uri), before)

    return read


def of_both(by: Callable[..., NamedAsset]) -> Callable[..., QueueRequest]:
    """Return the dependency that reads a request about a Dag and an asset, which `by` reads."""

    def read(of: QueueRequest = Depends(of_dag), asset: NamedAsset = Depends(by)) -> QueueRequest:  # noqa: B008
        return QueueRequest(f"{of.words} and {asset.words}", Selection(of.which.consumer, asset.uri), of.before)

    return read


def _serve(
    router: APIRouter, path: str, name: str, asked_for: Callable[..., QueueRequest], whose: str, *, one: bool = False
) -> None:
    """Serve GET and DELETE of the queued events that a request is about.

    Parameters:
        one: GET answers with one entry, not with a list.
    """

    def get(reader: TheReader, asked: QueueRequest = Depends(asked_for)) -> Json:  # noqa: B008
        found = [_entry(each) for each in asked.found(reader)]
        return Json(found[0] if one else {"queued_events": found, "total_entries": len(found)})

    def delete(backend: TheBackend, asked: QueueRequest = Depends(asked_for)) -> Response:  # noqa: B008
        return asked.remove(backend)

    model = QueuedEventOut if one else QueuedEventsOut
    told = f"{'a queued asset event' if one else 'queued asset events'} for {whose}."
    router.get(path, name=f"get_{name}", response_model=model, responses=answers(404), description=f"Get {told}")(get)
    router.delete(
        path,
        name=f"delete_{name}",
        status_code=204,
        response_class=Response,
        responses=answers(404) | _GONE,
        description=f"Delete {told}",
    )(delete)


def _entry(each: QueuedAsset) -> dict[str, object]:
    return {
        "asset_id": each.asset,
        "dag_id": dag_id(each.consumer_name),
        "dag_display_name": each.consumer_name,
        "created_at": iso(each.since),
    }


router = APIRouter(tags=["Airflow: queued events"], route_class=EtagRoute)
_serve(router, "/assets/{asset_id}/queuedEvents", "asset_queued_events", of_asset(by_number), "an asset")
_serve(router, "/dags/{dag_id}/assets/queuedEvents", "dag_asset_queued_events", of_dag, "a Dag")
_serve(
    router,
    "/dags/{dag_id}/assets/{asset_id}/queuedEvents",
    "dag_asset_queued_event",
    of_both(by_number),
    "a Dag",
    one=True,
)

AIRFLOW_2 = "Airflow 2: queued events"
airflow2 = APIRouter(tags=[AIRFLOW_2], route_class=EtagRoute)
_serve(airflow2, "/assets/queuedEvent/{uri:path}", "asset_queued_events", of_asset(by_uri), "an asset")
_serve(airflow2, "/dags/{dag_id}/assets/queuedEvent", "dag_queued_events", of_dag, "a Dag")
_serve(airflow2, "/dags/{dag_id}/assets/queuedEvent/{uri:path}", "dag_queued_event", of_both(by_uri), "a Dag", one=True)
