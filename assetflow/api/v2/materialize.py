"""Materialize: run the flow that makes an asset."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, cast
from uuid import UUID, uuid4

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from assetflow.api.backend import Backend, TheBackend
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.airflow import DagRunOut, MaterializeIn
from assetflow.api.v2.params import AssetId
from assetflow.api.v2.words import asset_numbered, dag_id
from assetflow.core.codec.run_context import RunContext, run_context_to_json
from assetflow.core.explanation.words import iso
from assetflow.core.partitions import check_key
from assetflow.core.redaction import redact
from assetflow.errors import Conflict, UnknownAsset
from assetflow.ledger.reader import Reader
from assetflow.prefect_io.rest import SECONDS_TO_ANSWER, patiently

router = APIRouter(tags=["Airflow: assets"], route_class=EtagRoute)


@router.post("/assets/{asset_id}/materialize", response_model=DagRunOut, responses=answers(404, 409, 413, 415))
async def materialize_asset(asset_id: AssetId, backend: TheBackend, body: MaterializeIn | None = None) -> Json:
    """Run the flow that makes the asset. 409 if several make it; 404 if none is known to."""
    wanted = body or MaterializeIn()
    name, deployment = await run_in_threadpool(producer_of, backend.ledger.reader, asset_id)
    run = await start_run(backend, deployment, wanted)
    return Json(_to_json(run, name, wanted))


def producer_of(reader: Reader, number: int) -> tuple[str, UUID]:
    """Name and id of the one deployment that declares to make an asset.

    Raises:
        UnknownAsset: there is no such asset, or nobody makes it.
        Conflict: several deployments make it.
    """
    record = asset_numbered(reader, number).record
    producers = reader.catalog.users_of([record])[record.uri].producers
    if not producers:
        raise UnknownAsset(
            f"no deployed flow declares to make {record.uri}",
            where="path.asset_id",
            fix="Name the asset in `outlets` of a task, or in `produces` of the flow, and deploy it",
        )
    if len(producers) > 1:
        raise Conflict(
            f"several deployments make {record.uri}: {', '.join(sorted(producers))}",
            where="path.asset_id",
            fix="Run the one that you mean in Prefect",
        )
    return next(iter(producers.items()))


async def start_run(backend: Backend, deployment: UUID, wanted: MaterializeIn) -> Mapping[str, Any]:
    """The flow run that Prefect made; a Prefect that is busy for a moment is asked again.

    Raises:
        PrefectUnreachable, PrefectRefused: there is none.
    """
    # With a key of its own, a request that is repeated does not make a second run.
    request = {"idempotency_key": str(uuid4())} | run_request(wanted)
    async with backend.prefect() as api:
        ask = partial(api.post, f"/deployments/{deployment}/create_flow_run", request)
        # A person waits: for a Prefect that does not answer at all, one time limit is enough.
        answer = await patiently(ask, within=SECONDS_TO_ANSWER)
    return cast("Mapping[str, Any]", answer)


def run_request(wanted: MaterializeIn) -> dict[str, Any]:
    """The body of Prefect's create_flow_run. The key travels in the context, where each flow finds its own."""
    details: dict[str, Any] = {} if wanted.run_after is None else {"scheduled_time": iso(wanted.run_after)}
    body: dict[str, Any] = {
        "parameters": wanted.conf or {},
        "tags": ["assetflow"],
        "state": {
            "type": "SCHEDULED",
            "name": "Scheduled",
            "message": "Asked for by the API",
            "state_details": details,
        },
    }
    if wanted.dag_run_id:
        body |= {"name": wanted.dag_run_id, "idempotency_key": wanted.dag_run_id}
    if wanted.partition_key is not None:
        context = RunContext(None, "", check_key(wanted.partition_key))
        body["context"] = run_context_to_json(context)
    return body


def _to_json(run: Mapping[str, Any], name: str, wanted: MaterializeIn) -> dict[str, object]:
    """The run in Airflow's shape; its id is the flow run's."""
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
