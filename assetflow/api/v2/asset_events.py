"""Asset events, as Airflow lists and creates them, and those that a run consumed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query

from assetflow.api.airflow_shapes import AssetEventIn, AssetEventOut, AssetEventsOut
from assetflow.api.problems import answers
from assetflow.api.requests import LARGEST, EtagRoute, Json, Moment, Text, TheBackend, TheReader
from assetflow.api.v2.airflow_terms import (
    DEFAULT,
    DagId,
    Limit,
    Offset,
    OrderBy,
    Pattern,
    Prefix,
    alternatives,
    asset_numbered,
    dag_id,
    order_of,
    page_size,
    run_to_json,
)
from assetflow.api.v2.airflow_terms import dag_id as dag_named
from assetflow.core.values.addresses import redacted_mapping
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import iso
from assetflow.errors import UnknownEvent, places
from assetflow.ledger.read.events import ConsumedBy
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord, EventFilter
from assetflow.operations.recording import update_asset

_TASK_RUN = re.compile(r"-[0-9a-f]{3}$")


def events_to_json(reader: Reader, found: Sequence[tuple[AssetEvent, int]]) -> list[dict[str, object]]:
    """Return events, each given with its asset's number, in Airflow's shape."""
    runs = reader.receipts.consumed_by([event.sequence for event, _ in found if event.sequence is not None])
    return [_to_json(event, number, runs.get(event.sequence or 0, [])) for event, number in found]


def _to_json(event: AssetEvent, number: int, runs: Sequence[ConsumedBy]) -> dict[str, object]:
    extra = redacted_mapping(event.extra)
    if event.origin.kind == "api":
        # Airflow stores this in the extra; assetflow adds it in these answers only. Contract 2.2.
        extra["from_rest_api"] = True
    task, flow = event.origin.task_run, event.origin.flow_run
    source = "" if flow is None else ".".join(name for name in (flow.flow_name, flow.deployment_name) if name)
    return {
        "id": event.sequence,
        "asset_id": number,
        "uri": event.uri,
        "name": event.asset.name,
        "group": event.asset.group,
        "extra": extra,
        "source_task_id": None if task is None else _TASK_RUN.sub("", task.name),
        "source_dag_id": source or None,
        "source_run_id": None if flow is None else str(flow.id),
        "source_map_index": -1,
        "created_dagruns": [run_to_json(each, event.sequence or 0) for each in runs],
        "timestamp": iso(event.occurred),
        "partition_key": event.partition_key,
    }


router = APIRouter(tags=["Airflow: assets"], route_class=EtagRoute)

_ORDERS = ("timestamp", "id", "source_task_id", "source_dag_id", "source_run_id", "source_map_index")


@router.get("/assets/events", response_model=AssetEventsOut, responses=answers())
def get_asset_events(
    reader: TheReader,
    limit: Limit = DEFAULT,
    offset: Offset = 0,
    order_by: OrderBy = [],  # noqa: B006 (FastAPI copies it)
    asset_id: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
    source_dag_id: Text | None = None,
    source_task_id: Text | None = None,
    source_run_id: Text | None = None,
    source_map_index: Annotated[int | None, Query(ge=-LARGEST, le=LARGEST)] = None,
    name_pattern: Pattern = None,
    name_prefix_pattern: Prefix = None,
    timestamp_gte: Moment | None = None,
    timestamp_gt: Moment | None = None,
    timestamp_lte: Moment | None = None,
    timestamp_lt: Moment | None = None,
) -> Json:
    """Get asset events."""
    order = [each for each in order_of(order_by, _ORDERS) if each[0] != "source_map_index"]
    run = None if source_run_id is None else _uuid(source_run_id)
    asset = None if asset_id is None else reader.assets.get(number=asset_id)
    unknown = (asset_id is not None and asset is None) or (source_run_id is not None and run is None)
    if unknown or source_map_index not in (None, -1):
        return Json({"asset_events": [], "total_entries": 0})
    query = EventFilter(
        uri=None if asset is None else asset.record.uri,
        source=None if source_dag_id is None else dag_id(source_dag_id),
        task=source_task_id,
        flow_run_id=run,
        name=alternatives(name_pattern),
        name_prefix=alternatives(name_prefix_pattern),
        since=timestamp_gte,
        after=timestamp_gt,
        until=timestamp_lte,
        before=timestamp_lt,
    )
    found, total = reader.events.page(query, order or [("timestamp", False)], limit=page_size(limit), offset=offset)
    return Json({"asset_events": events_to_json(reader, found), "total_entries": total})


@router.post("/assets/events", response_model=AssetEventOut, responses=answers(404, 413, 415))
def create_asset_event(body: AssetEventIn, backend: TheBackend) -> Json:
    """Record that an asset was updated. The update is durable when this answers."""
    reader = backend.ledger.reader
    listed = asset_numbered(reader, body.asset_id)
    with places(asset="body.asset_id"):
        recorded = update_asset(backend, listed, extra=body.extra, partition_key=body.partition_key)
    return Json(events_to_json(reader, [(recorded, body.asset_id)])[0])


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


run_router = APIRouter(tags=["Airflow: runs"], route_class=EtagRoute)

RunId = Annotated[
    Text, Path(min_length=1, max_length=250, description="The flow run's id, or that of the decision behind it.")
]


@run_router.get(
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
