"""Assets, aliases and asset events, as Airflow lists and creates them; materialize; and what a run consumed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from fastapi.concurrency import run_in_threadpool

from assetflow.api.problems import answers
from assetflow.api.requests import LARGEST, EtagRoute, Json, Moment, Text, TheBackend, TheReader
from assetflow.api.v2.airflow_terms import (
    DEFAULT,
    AirflowAsset,
    AliasesOut,
    AliasOut,
    AssetEventIn,
    AssetEventOut,
    AssetEventsOut,
    AssetId,
    AssetsOut,
    DagId,
    DagRunOut,
    Limit,
    MaterializeIn,
    Offset,
    OrderBy,
    Pattern,
    Prefix,
    alias_number,
    alias_to_json,
    alternatives,
    asset_numbered,
    dag_id,
    order_of,
    page_size,
    run_to_json,
)
from assetflow.api.v2.airflow_terms import dag_id as dag_named
from assetflow.core.values.addresses import redact, redacted_mapping
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import iso
from assetflow.errors import UnknownAsset, UnknownEvent, places
from assetflow.ledger.read.assets import AssetFilter, AssetUsers, ListedAsset
from assetflow.ledger.read.events import ConsumedBy
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord, EventFilter
from assetflow.operations.recording import update_asset
from assetflow.operations.runs_by_hand import RunWanted, maker_of, start_run

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
def create_asset_event(body: AssetEventIn, backend: TheBackend, reader: TheReader) -> Json:
    """Record that an asset was updated. The update is durable when this answers."""
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
    number = _uuid(text)
    return None if number is None else reader.decisions.of_run(number) or reader.decisions.get(number)


@router.get("/assets/aliases", response_model=AliasesOut, responses=answers())
def get_asset_aliases(
    reader: TheReader,
    limit: Limit = DEFAULT,
    offset: Offset = 0,
    name_pattern: Pattern = None,
    name_prefix_pattern: Prefix = None,
    order_by: OrderBy = [],  # noqa: B006 (FastAPI copies it)
) -> Json:
    """Get asset aliases."""
    order = order_of(order_by, ("id", "name"))
    names = [name for name in reader.assets.aliases() if _wanted(name, name_pattern, name_prefix_pattern)]
    for by, descends in reversed(order):
        names.sort(key=alias_number if by == "id" else str, reverse=descends)
    shown = names[offset : offset + page_size(limit)]
    return Json({"asset_aliases": [alias_to_json(name) for name in shown], "total_entries": len(names)})


@router.get("/assets/aliases/{asset_alias_id}", response_model=AliasOut, responses=answers(404))
def get_asset_alias(asset_alias_id: Annotated[int, Path(ge=0, le=LARGEST)], reader: TheReader) -> Json:
    """Get an asset alias."""
    found = [name for name in reader.assets.aliases() if alias_number(name) == asset_alias_id]
    if not found:
        raise UnknownAsset(
            f"the asset alias with ID `{asset_alias_id}` was not found",
            where="path.asset_alias_id",
            fix="GET /api/v2/assets/aliases lists the aliases",
        )
    return Json(alias_to_json(found[0]))


def _wanted(name: str, pattern: str | None, prefix: str | None) -> bool:
    parts, beginnings = alternatives(pattern), alternatives(prefix)
    return (not parts or any(_is_like(name, part) for part in parts)) and (
        not beginnings or name.startswith(tuple(beginnings))
    )


def _is_like(name: str, pattern: str) -> bool:
    """Return True if SQL's `name ILIKE '%pattern%'` is true.

    The parts between two `%` are looked for one after the other: one regular expression for all of them would take
    longer with each `%`, without limit.
    """
    end = 0
    for part in _between_wildcards(pattern):
        found = part.search(name, end)
        if found is None:
            return False
        end = found.end()
    return True


def _between_wildcards(pattern: str) -> Iterator[re.Pattern[str]]:
    part = ""
    for sign in re.findall(r"\\.|.", pattern, re.DOTALL):
        if sign == "%":
            yield re.compile(part, re.IGNORECASE | re.DOTALL)
            part = ""
        else:
            part += "." if sign == "_" else re.escape(sign[-1])
    yield re.compile(part, re.IGNORECASE | re.DOTALL)


@router.post("/assets/{asset_id}/materialize", response_model=DagRunOut, responses=answers(404, 409, 413, 415))
async def materialize_asset(asset_id: AssetId, backend: TheBackend, body: MaterializeIn | None = None) -> Json:
    """Run the flow that makes the asset. Answers 409 if several flows make it, and 404 if none is known to."""
    given = body or MaterializeIn()
    wanted = RunWanted(given.conf or {}, given.partition_key, given.dag_run_id, given.run_after)
    with places(asset="path.asset_id", producer="path.asset_id", parameters="conf"):
        name, deployment = await run_in_threadpool(_maker, backend.ledger.reader, asset_id)
        run = await start_run(backend.prefect, deployment, wanted)
    return Json(_asset_to_json(run, name, given))


def _maker(reader: Reader, number: int) -> tuple[str, UUID]:
    record = asset_numbered(reader, number).record
    return maker_of(record.uri, reader.assets.users_of([record])[record.uri].producers)


def _asset_to_json(run: Mapping[str, Any], name: str, wanted: MaterializeIn) -> dict[str, object]:
    """Return the run in Airflow's shape, with the flow run's id as its id."""
    created = _moment(run.get("created")) or _moment(run.get("expected_start_time"))
    return {
        "dag_run_id": str(run["id"]),
        "dag_id": dag_id(name),
        "dag_display_name": name,
        "logical_date": None,
        "queued_at": iso(created),
        "start_date": iso(_moment(run.get("start_time"))),
        "end_date": iso(_moment(run.get("end_time"))),
        "duration": None,
        "data_interval_start": None,
        "data_interval_end": None,
        "run_after": iso(_moment(run.get("expected_start_time")) or created),
        "last_scheduling_decision": None,
        "run_type": "asset_materialization",
        "state": _STATES.get(str(run.get("state_type")), "queued"),
        "triggered_by": "rest_api",
        "triggering_user_name": None,
        "conf": redact(wanted.conf),
        "note": None,
        "dag_versions": [],
        "bundle_version": None,
        "partition_key": wanted.partition_key,
        "partition_date": None,
    }


_STATES = {"COMPLETED": "success", "FAILED": "failed", "CRASHED": "failed", "CANCELLED": "failed", "RUNNING": "running"}


def _moment(value: object) -> datetime | None:
    return datetime.fromisoformat(str(value)) if value else None


_ASSET_ORDERS = ("id", "name", "uri", "created_at", "updated_at")


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
    found, total = assets.page(query, order_of(order_by, _ASSET_ORDERS), limit=page_size(limit), offset=offset)
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
