"""Find and remove queued events, for Airflow's requests by number and by URI.

As in Airflow, the answer is 404 if nothing is queued. These requests leave out pending partitions, which are removed
only by consumer and key. Contract 3.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query, Response

from assetflow.api.requests import Backend, Json, Moment, TheReader
from assetflow.api.v2.airflow_terms import DagId, consumer_of, dag_id
from assetflow.core.values.words import iso
from assetflow.errors import UnknownEvent
from assetflow.ledger.read.queues import QueuedAsset
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import Selection
from assetflow.operations.queue import remove_queued

Before = Annotated[Moment | None, Query(description="Only events that were recorded before this time.")]
GONE = {204: {"description": "They are removed"}}


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
            raise self.nothing()
        return earlier

    def remove(self, backend: Backend) -> Response:
        """Remove the queued events, and answer without content.

        Raises:
            UnknownEvent: nothing is queued.
        """
        self.found(backend.ledger.reader)
        remove_queued(backend, self.which, before=self.before, by="api", why="deleted through the API")
        return Response(status_code=204)

    def nothing(self) -> UnknownEvent:
        """Return the error for a request that finds nothing."""
        return UnknownEvent(
            f"queued events with {self.words} were not found",
            where="path",
            fix="GET /api/v1/consumers/{flow}/{deployment}/queue lists what is queued for a flow, by partition key too",
        )


def of_dag(dag_id: DagId, reader: TheReader, before: Before = None) -> QueueRequest:
    """Return the queued events that a request about one Dag is about."""
    return QueueRequest(f"dag_id: `{dag_id}`", Selection(consumer_of(reader, dag_id)), before)


OfDag = Annotated[QueueRequest, Depends(of_dag)]


def queue_answer(found: list[QueuedAsset]) -> Json:
    """Return queued events as a response in Airflow's shape."""
    return Json({"queued_events": [entry(each) for each in found], "total_entries": len(found)})


def entry(each: QueuedAsset) -> dict[str, object]:
    """Return the entry for one Dag and one asset."""
    return {
        "asset_id": each.asset,
        "dag_id": dag_id(each.consumer_name),
        "dag_display_name": each.consumer_name,
        "created_at": iso(each.since),
    }
