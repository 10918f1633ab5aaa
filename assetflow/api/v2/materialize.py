"""Materialize: run the flow that makes an asset."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from assetflow.api.airflow_shapes import DagRunOut, MaterializeIn
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, TheBackend
from assetflow.api.v2.airflow_terms import AssetId, asset_numbered, dag_id
from assetflow.core.values.addresses import redact
from assetflow.core.values.words import iso
from assetflow.errors import places
from assetflow.ledger.read.reader import Reader
from assetflow.operations.runs_by_hand import RunWanted, maker_of, start_run

router = APIRouter(tags=["Airflow: assets"], route_class=EtagRoute)


@router.post("/assets/{asset_id}/materialize", response_model=DagRunOut, responses=answers(404, 409, 413, 415))
async def materialize_asset(asset_id: AssetId, backend: TheBackend, body: MaterializeIn | None = None) -> Json:
    """Run the flow that makes the asset. Answers 409 if several flows make it, and 404 if none is known to."""
    given = body or MaterializeIn()
    wanted = RunWanted(given.conf or {}, given.partition_key, given.dag_run_id, given.run_after)
    with places(asset="path.asset_id", producer="path.asset_id", parameters="conf"):
        name, deployment = await run_in_threadpool(_maker, backend.ledger.reader, asset_id)
        run = await start_run(backend.prefect, deployment, wanted)
    return Json(_to_json(run, name, given))


def _maker(reader: Reader, number: int) -> tuple[str, UUID]:
    record = asset_numbered(reader, number).record
    return maker_of(record.uri, reader.assets.users_of([record])[record.uri].producers)


def _to_json(run: Mapping[str, Any], name: str, wanted: MaterializeIn) -> dict[str, object]:
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
