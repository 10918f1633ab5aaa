"""Assets, as Airflow lists and describes them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.airflow_shapes import AirflowAsset, AssetsOut
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, Text, TheReader
from assetflow.api.v2.airflow_terms import (
    DEFAULT,
    AssetId,
    Limit,
    Offset,
    OrderBy,
    Pattern,
    Prefix,
    alias_to_json,
    alternatives,
    asset_numbered,
    dag_id,
    order_of,
    page_size,
)
from assetflow.core.values.addresses import redact
from assetflow.core.values.words import iso
from assetflow.ledger.read.assets import AssetFilter, AssetUsers, ListedAsset

router = APIRouter(tags=["Airflow: assets"], route_class=EtagRoute)

_ORDERS = ("id", "name", "uri", "created_at", "updated_at")


@router.get("/assets", response_model=AssetsOut, responses=answers())
def get_assets(
    reader: TheReader,
    limit: Limit = DEFAULT,
    offset: Offset = 0,
    name_pattern: Pattern = None,
    name_prefix_pattern: Prefix = None,
    uri_pattern: Pattern = None,
    uri_prefix_pattern: Prefix = None,
    dag_ids: Annotated[list[Text], Query(description="Scheduled on, made or read by one of these Dags.")] = [],  # noqa: B006
    only_active: Annotated[bool, Query(description="Without the assets that an operator has hidden.")] = True,
    order_by: OrderBy = [],  # noqa: B006
) -> Json:
    """Get assets."""
    assets = reader.assets
    uris = assets.uris_of_tokens(assets.tokens_of_flows([dag_id(each) for each in dag_ids])) if dag_ids else None
    query = AssetFilter(
        hidden=False if only_active else None,
        name=alternatives(name_pattern),
        uri=alternatives(uri_pattern),
        name_prefix=alternatives(name_prefix_pattern),
        uri_prefix=alternatives(uri_prefix_pattern),
        uris=uris,
    )
    found, total = assets.page(query, order_of(order_by, _ORDERS), limit=page_size(limit), offset=offset)
    users = assets.users_of([each.record for each in found])
    return Json({"assets": [asset_to_json(each, users[each.record.uri]) for each in found], "total_entries": total})


@router.get("/assets/{asset_id}", response_model=AirflowAsset, responses=answers(404))
def get_asset(asset_id: AssetId, reader: TheReader) -> Json:
    """Get an asset."""
    found = asset_numbered(reader, asset_id)
    return Json(asset_to_json(found, reader.assets.users_of([found.record])[found.record.uri]))


def asset_to_json(found: ListedAsset, users: AssetUsers) -> dict[str, object]:
    """Return an asset in Airflow's shape. Each flow is a Dag with one task: assetflow does not know its tasks."""
    record = found.record
    seen = iso(record.first_seen)
    document: dict[str, object] = {
        "id": record.id,
        "name": found.name,
        "uri": record.uri,
        "group": record.group,
        "extra": redact(record.extra),
        "created_at": seen,
        "updated_at": iso(found.updated),
        "scheduled_dags": [
            {"dag_id": dag_id(name), "created_at": iso(since), "updated_at": iso(since)}
            for name, since in users.scheduled.items()
        ],
        "producing_tasks": [_task(name, seen) for name in users.producers],
        "consuming_tasks": [_task(name, seen) for name in users.readers],
        "aliases": [alias_to_json(alias) for alias in record.aliases],
        "watchers": [],
        "last_asset_event": None,
    }
    if found.last_event is not None:
        document["last_asset_event"] = {"id": found.last_event, "timestamp": iso(found.last_time)}
    return document


def _task(name: str, seen: str | None) -> dict[str, object]:
    return {"dag_id": dag_id(name), "task_id": name.partition("/")[0], "created_at": seen, "updated_at": seen}
