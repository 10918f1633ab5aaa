"""The asset events that a run consumed, in Airflow's shape."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path

from assetflow.api.airflow_shapes import AssetEventsOut
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, Text, TheReader
from assetflow.api.v2.airflow_terms import DagId
from assetflow.api.v2.airflow_terms import dag_id as dag_named
from assetflow.api.v2.asset_events import events_to_json
from assetflow.errors import UnknownEvent
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord

router = APIRouter(tags=["Airflow: runs"], route_class=EtagRoute)

RunId = Annotated[
    Text, Path(min_length=1, max_length=250, description="The flow run's id, or that of the decision behind it.")
]


@router.get(
    "/dags/{dag_id}/dagRuns/{dag_run_id}/upstreamAssetEvents", response_model=AssetEventsOut, responses=answers(404)
)
def get_upstream_asset_events(dag_id: DagId, dag_run_id: RunId, reader: TheReader) -> Json:
    """List the asset events that a run consumed, oldest first. Runs that updates did not start consumed none."""
    record = _decision(reader, dag_run_id)
    if record is None or dag_id not in (dag_named(record.consumer_name), str(record.deployment_id)):
        raise UnknownEvent(
            f"the run with dag_id: `{dag_id}` and run_id: `{dag_run_id}` was not started by updates",
            where="path.dag_run_id",
            fix="GET /api/v1/decisions lists the runs that updates started",
        )
    events = reader.decisions.events_of([record])[record.id]
    numbers = reader.assets.numbers({event.uri for event in events})
    found = events_to_json(reader, [(event, numbers[event.uri]) for event in events])
    return Json({"asset_events": found, "total_entries": len(found)})


def _decision(reader: Reader, text: str) -> DecisionRecord | None:
    try:
        number = UUID(text)
    except ValueError:
        return None
    return reader.decisions.of_run(number) or reader.decisions.get(number)
