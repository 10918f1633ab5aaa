"""Begin, list, show, stop and resume backfills of assets. Contract 8.18."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, Number, TheBackend, ThePage, TheReader
from assetflow.api.schemas.assets import (
    BackfillIn,
    BackfillOut,
    BackfillPreview,
    BackfillsPage,
    BackfillTargetsPage,
    BackfillTold,
    TargetState,
)
from assetflow.core.partitions.ranges import read_periods
from assetflow.errors import InvalidCall, places
from assetflow.ledger.read.backfills import BackfillRecord, BackfillTargetRecord
from assetflow.operations import backfill
from assetflow.operations.backfill import BackfillWanted, find_backfill, plan
from assetflow.operations.lookup import find_uri

router = APIRouter(tags=["backfills"], route_class=EtagRoute)

_PLACES = {"asset": "body.asset", "keys": "body.target_keys"}


@router.get("/backfills", response_model=BackfillsPage, responses=answers())
def list_backfills(
    reader: TheReader,
    page: ThePage,
) -> Json:
    """List the backfills of assets, newest first."""
    found = reader.backfills.all(before=page.number, limit=page.limit)
    return Json(page.after(found, BackfillRecord.as_json, lambda each: each.number))


@router.post(
    "/backfills", response_model=BackfillOut | BackfillPreview, responses=answers(404, 413, 415), status_code=200
)
def begin_backfill(
    wanted: BackfillIn,
    backend: TheBackend,
    preview: Annotated[bool, Query(description="Begin nothing: answer with the waves.")] = False,
) -> Json:
    """Begin a backfill of an asset and, with `down`, of what lies below it. The evaluator carries it out (8.18)."""
    reader = backend.ledger.reader
    with places(**_PLACES):
        between = _range_of(wanted)
        given = BackfillWanted(find_uri(reader, wanted.asset), wanted.down, wanted.target_keys, between)
        planned = plan(reader, given)
    if preview:
        waves = planned.waves_as_json()
        return Json({"uri": given.uri, "down": given.down, "total_targets": len(planned.steps), "waves": waves})
    options = {"by": wanted.by, "why": wanted.why}
    return Json(backfill.begin(backend, given, planned, concurrency=wanted.concurrency, **options).as_json())


@router.get("/backfills/{number}", response_model=BackfillTold, responses=answers(404))
def show_backfill(number: Number, reader: TheReader) -> Json:
    """Return how far a backfill has come, wave by wave."""
    record = find_backfill(reader, number)
    return Json(record.as_json() | {"waves": [each.as_json() for each in reader.backfills.progress(number)]})


@router.get("/backfills/{number}/targets", response_model=BackfillTargetsPage, responses=answers(404))
def list_backfill_targets(
    number: Number,
    reader: TheReader,
    page: ThePage,
    state: TargetState | None = None,
) -> Json:
    """List the targets of a backfill with their runs, by consumer and key."""
    find_backfill(reader, number)
    after = -1 if page.number is None else page.number
    found = reader.backfills.targets(number, state=state, after=after, limit=page.limit)
    return Json(page.after(found, BackfillTargetRecord.as_json, lambda each: each.step.place))


@router.post("/backfills/{number}/stop", response_model=BackfillOut, responses=answers(404, 409, 415))
def stop_backfill(number: Number, backend: TheBackend) -> Json:
    """Stop a backfill: its runs go on, and no further one starts."""
    return Json(backfill.stop(backend, number).as_json())


@router.post("/backfills/{number}/resume", response_model=BackfillOut, responses=answers(404, 409, 415))
def resume_backfill(number: Number, backend: TheBackend) -> Json:
    """Resume a backfill that was stopped or failed: what failed runs again, with what that took off."""
    return Json(backfill.resume(backend, number).as_json())


def _range_of(wanted: BackfillIn) -> tuple[datetime, datetime] | None:
    if wanted.from_ is None and wanted.to is None:
        return None
    if wanted.from_ is None or wanted.to is None:
        raise InvalidCall(
            "a range needs from and to", fix="Give both, such as 2026-11-01 and 2026-11-20: both included"
        )
    return read_periods(wanted.from_, wanted.to)
