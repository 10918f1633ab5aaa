"""Begin, list, show, stop and resume backfills of assets. Contract 8.18."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.own_shapes import BackfillIn
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Number, Page, TheBackend, ThePage, TheReader
from assetflow.core.freshness.records import StepState
from assetflow.core.partitions.ranges import read_periods
from assetflow.errors import InvalidCall, places
from assetflow.ledger.read.backfills import BackfillPreview, BackfillProgress, BackfillTargetRecord, ShownBackfill
from assetflow.operations import backfill
from assetflow.operations.backfill import BackfillWanted, find_backfill, plan
from assetflow.operations.lookup import find_uri

router = APIRouter(tags=["backfills"], route_class=EtagRoute)

_PLACES = {"asset": "body.asset", "keys": "body.target_keys"}


@router.get("/backfills", responses=answers())
def list_backfills(
    reader: TheReader,
    page: ThePage,
) -> Page[ShownBackfill]:
    """List the backfills of assets, newest first."""
    found = reader.backfills.all(before=page.number, limit=page.limit)
    return page.after([each.shown() for each in found], lambda each: each.number)


@router.post("/backfills", responses=answers(404, 413, 415), status_code=200)
def begin_backfill(
    wanted: BackfillIn,
    backend: TheBackend,
    preview: Annotated[bool, Query(description="Begin nothing: answer with the waves.")] = False,
) -> ShownBackfill | BackfillPreview:
    """Begin a backfill of an asset and, with `down`, of what lies below it. The evaluator carries it out (8.18)."""
    reader = backend.ledger.reader
    with places(**_PLACES):
        between = _range_of(wanted)
        given = BackfillWanted(find_uri(reader, wanted.asset), wanted.down, wanted.target_keys, between)
        planned = plan(reader, given)
    if preview:
        return planned.shown(given.uri, down=given.down)
    options = {"by": wanted.by, "why": wanted.why}
    return backfill.begin(backend, given, planned, concurrency=wanted.concurrency, **options).shown()


@router.get("/backfills/{number}", responses=answers(404))
def show_backfill(number: Number, reader: TheReader) -> BackfillProgress:
    """Return how far a backfill has come, wave by wave."""
    record = find_backfill(reader, number)
    return BackfillProgress(**vars(record.shown()), waves=reader.backfills.progress(number))


@router.get("/backfills/{number}/targets", responses=answers(404))
def list_backfill_targets(
    number: Number,
    reader: TheReader,
    page: ThePage,
    state: StepState | None = None,
) -> Page[BackfillTargetRecord]:
    """List the targets of a backfill with their runs, by consumer and key."""
    find_backfill(reader, number)
    after = -1 if page.number is None else page.number
    found = reader.backfills.targets(number, state=state, after=after, limit=page.limit)
    return page.after(found, lambda each: each.place)


@router.post("/backfills/{number}/stop", responses=answers(404, 409, 415))
def stop_backfill(number: Number, backend: TheBackend) -> ShownBackfill:
    """Stop a backfill: its runs go on, and no further one starts."""
    return backfill.stop(backend, number).shown()


@router.post("/backfills/{number}/resume", responses=answers(404, 409, 415))
def resume_backfill(number: Number, backend: TheBackend) -> ShownBackfill:
    """Resume a backfill that was stopped or failed: what failed runs again, with what that took off."""
    return backfill.resume(backend, number).shown()


def _range_of(wanted: BackfillIn) -> tuple[datetime, datetime] | None:
    if wanted.from_ is None and wanted.to is None:
        return None
    if wanted.from_ is None or wanted.to is None:
        raise InvalidCall(
            "a range needs from and to", fix="Give both, such as 2026-11-01 and 2026-11-20: both included"
        )
    return read_periods(wanted.from_, wanted.to)
