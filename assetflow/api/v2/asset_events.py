"""Asset events, as Airflow lists and creates them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from assetflow.api.backend import Backend, TheBackend, TheReader
from assetflow.api.inputs import make_event
from assetflow.api.paging import LARGEST, Moment, Text
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.airflow import AssetEventIn, AssetEventOut, AssetEventsOut
from assetflow.api.v2.params import Limit, Offset, OrderBy, Pattern, Prefix
from assetflow.api.v2.words import DEFAULT, alternatives, asset_numbered, dag_id, order_of, page_size, run_to_json
from assetflow.core.assets import Asset
from assetflow.core.events import AssetEvent, Recording
from assetflow.core.explanation.words import iso
from assetflow.core.redaction import redacted_mapping
from assetflow.errors import UnknownAsset
from assetflow.ledger.catalog import ListedAsset
from assetflow.ledger.catalog_events import ConsumedBy, EventFilter
from assetflow.ledger.reader import Reader

router = APIRouter(tags=["Airflow: assets"], route_class=EtagRoute)

_ORDERS = ("timestamp", "id", "source_task_id", "source_dag_id", "source_run_id", "source_map_index")
_TASK_RUN = re.compile(r"-[0-9a-f]{3}$")


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
    asset = None if asset_id is None else reader.catalog.asset(number=asset_id)
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
        gte=timestamp_gte,
        gt=timestamp_gt,
        lte=timestamp_lte,
        lt=timestamp_lt,
    )
    found, total = reader.event_catalog.page(
        query, order or [("timestamp", False)], limit=page_size(limit), offset=offset
    )
    return Json({"asset_events": events_to_json(reader, found), "total_entries": total})


@router.post("/assets/events", response_model=AssetEventOut, responses=answers(404, 413, 415))
def create_asset_event(body: AssetEventIn, backend: TheBackend) -> Json:
    """Record that an asset was updated. It is durable when this answers."""
    reader = backend.ledger.reader
    recorded = record_update(backend, asset_numbered(reader, body.asset_id), body.extra, body.partition_key)
    return Json(events_to_json(reader, [(recorded, body.asset_id)])[0])


def record_update(
    backend: Backend, listed: ListedAsset, extra: Mapping[str, object] | None, partition_key: str | None, by: str = ""
) -> AssetEvent:
    """Record one update of an asset that is known.

    Raises:
        InvalidEvent, InvalidPartition, TooLarge, UnknownAsset: `where` is the field.
    """
    now = backend.now()
    asset = _asset(listed.record.uri, listed.name)
    event = make_event(asset, now, extra=extra, partition_key=partition_key, by=by)
    recorded, decisions = backend.ledger.writer.record([Recording(event.id, (event,))], now)[0]
    if decisions:
        backend.on_recorded()
    return recorded.events[0]


def events_to_json(reader: Reader, found: Sequence[tuple[AssetEvent, int]]) -> list[dict[str, object]]:
    """Events, each with its asset's number, in Airflow's shape."""
    runs = reader.event_catalog.consumed_by([event.sequence for event, _ in found if event.sequence is not None])
    return [_to_json(event, number, runs.get(event.sequence or 0, [])) for event, number in found]


def _to_json(event: AssetEvent, number: int, runs: Sequence[ConsumedBy]) -> dict[str, object]:
    extra = redacted_mapping(event.extra)
    if event.origin.kind == "api":
        # Airflow keeps this in the extra; here it is no part of it, and said in these answers only (2.2).
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


def _asset(uri: str, name: str) -> Asset:
    try:
        return Asset(uri, name=name)
    except ValueError as error:
        raise UnknownAsset(f"{uri} is no asset that can be updated here: {error}", where="body.asset_id") from error


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
