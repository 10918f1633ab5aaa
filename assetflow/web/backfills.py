"""The pages of backfills: the list, and how far one has come, with the buttons that stop and resume it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from assetflow.api.requests import LARGEST, Backend, Number, Text, TheBackend, TheReader
from assetflow.core.freshness.records import Backfill, StepState
from assetflow.core.rules.ended_runs import run_name
from assetflow.core.values.keeping import Cause
from assetflow.core.values.words import count, rounded_in_words
from assetflow.errors import Conflict, LedgerForeign, UnknownAsset
from assetflow.ledger.read.backfills import BackfillRecord, BackfillTargetRecord
from assetflow.ledger.read.reader import Reader
from assetflow.operations import backfill
from assetflow.operations.backfill import find_backfill
from assetflow.operations.lookup import find_uri, near_assets
from assetflow.web.forms import TheForm, in_words
from assetflow.web.pages import Pages, ThePages, url

router = APIRouter()

ROWS = 50
STATES: tuple[tuple[StepState, str], ...] = (
    ("asked", "running"),
    ("failed", "failed"),
    ("todo", "waiting"),
    ("done", "done"),
    ("removed", "taken off"),
)
Before = Annotated[int | None, Query(ge=0, le=LARGEST)]
After = Annotated[int, Query(ge=-1, le=LARGEST)]


@dataclass(frozen=True)
class TargetsPage:
    """A part of the targets of a backfill.

    Attributes:
        state: the state of all of them; `None` for the targets of every state.
        more: the address of those that follow; "" for none.
    """

    state: StepState | None
    shown: list[BackfillTargetRecord]
    more: str


@router.get("/backfills")
def list_backfills(
    request: Request, pages: ThePages, reader: TheReader, asset: Text = "", before: Before = None
) -> Response:
    """Show the backfills, newest first, or those of one asset."""
    try:
        uri = find_uri(reader, asset) if asset else None
    except UnknownAsset:
        return pages.show(request, "asset_unknown.html", status=404, asked=asset, near=near_assets(reader, asset))
    found = reader.backfills.all(uri=uri, before=before, limit=ROWS + 1)
    shown = found[:ROWS]
    return pages.show(
        request,
        "backfills.html",
        fragment="list",
        found=shown,
        words=words_of,
        shares=shares_of,
        uri=uri,
        again="every 5s" if any(each.state in ("preparing", "running") for each in shown) else "",
        here=url("/backfills", asset=asset, before=before),
        newest=url("/backfills", asset=asset) if before is not None else "",
        older=url("/backfills", asset=asset, before=shown[-1].number) if len(found) > ROWS else "",
    )


@router.get("/backfills/{number}")
def show_backfill(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    number: Number,
    state: StepState | None = None,
    after: After = -1,
) -> Response:
    """Show how far a backfill has come, wave by wave, and its runs.

    Parameters:
        state: only targets in this state. By default those that run or failed are shown, or all if there are none.
        after: only targets after this place.
    """
    return _page(request, pages, reader, number, state, after)


@router.get("/backfills/{number}/stop")
@router.get("/backfills/{number}/resume")
def leave_switch(number: Number) -> Response:
    """Redirect to the backfill: a browser asks for this address when a user reloads a refused switch."""
    return RedirectResponse(url("/backfills", number), 303)


@router.post("/backfills/{number}/stop")
def stop_backfill(request: Request, pages: ThePages, backend: TheBackend, number: Number, _: TheForm) -> Response:
    """Stop a backfill: its runs go on, and no further one starts."""
    return _switch(request, pages, backend, number, backfill.stop)


@router.post("/backfills/{number}/resume")
def resume_backfill(request: Request, pages: ThePages, backend: TheBackend, number: Number, _: TheForm) -> Response:
    """Resume a backfill: what failed runs again, with what that took off."""
    return _switch(request, pages, backend, number, backfill.resume)


def words_of(record: BackfillRecord) -> str:
    """Return how far a backfill has come: `12 of 31 runs done, 4 running, 1 failed`."""
    each = record.backfill
    parts = ((each.asked, "running"), (each.failed, "failed"), (each.removed, "taken off"))
    told = [f"{each.done:,} of {count(record.total, 'run')} done", *(f"{n:,} {word}" for n, word in parts if n)]
    return ", ".join(told)


def shares_of(backfill: Backfill) -> dict[StepState, int]:
    """Return how many targets of a backfill are in which state."""
    return {state: getattr(backfill, state) for state, _ in STATES}


def pace_of(record: BackfillRecord, now: datetime) -> str:
    """Return how fast a running backfill is, and how long the rest will take at this pace; "" if nobody can say."""
    each = record.backfill
    elapsed = (now - each.made).total_seconds()
    if record.state != "running" or not each.done or elapsed <= 0:
        return ""
    left = timedelta(seconds=elapsed / each.done * (each.todo + each.asked))
    an_hour = count(round(each.done * 3600 / elapsed), "run")
    return f" At {an_hour} an hour, the rest takes about {rounded_in_words(left)}."


def run_name_of(target: BackfillTargetRecord) -> str:
    """Return the name of a target's run in Prefect."""
    return run_name(target.decision_id, target.target_key, (), (Cause("backfill"),), target.consumer)


def _switch(
    request: Request, pages: Pages, backend: Backend, number: int, change: Callable[[Backend, int], BackfillRecord]
) -> Response:
    try:
        change(backend, number)
    except (Conflict, LedgerForeign) as error:
        refused = f"Nothing was changed. {in_words(error)}"
        return _page(request, pages, backend.ledger.reader, number, None, -1, status=409, refused=refused)
    return RedirectResponse(url("/backfills", number), 303)


def _page(
    request: Request,
    pages: Pages,
    reader: Reader,
    number: int,
    state: StepState | None,
    after: int,
    *,
    status: int = 200,
    refused: str = "",
) -> Response:
    record = find_backfill(reader, number)
    states: list[StepState | None] = [state] if state is not None or after >= 0 else _states_of_interest(record)
    return pages.show(
        request,
        "backfill.html",
        fragment="live_part",
        status=status,
        record=record,
        words=words_of(record),
        shares=shares_of,
        pace=pace_of(record, request.app.state.backend.now()),
        run_name_of=run_name_of,
        columns=reader.backfills.progress(number),
        states=STATES,
        wanted=state,
        targets=[_targets(reader, number, each, after) for each in states],
        refused=refused,
        again="every 2s" if record.state in ("preparing", "running") else "",
        here=url("/backfills", number, state=state, after=after if after >= 0 else None),
    )


def _states_of_interest(record: BackfillRecord) -> list[StepState | None]:
    """Return the states to show at first: what runs and what failed, else everything."""
    counts: dict[StepState | None, int] = {"asked": record.backfill.asked, "failed": record.backfill.failed}
    return [state for state, number in counts.items() if number] or [None]


def _targets(reader: Reader, number: int, state: StepState | None, after: int) -> TargetsPage:
    found = reader.backfills.targets(number, state=state, after=after, limit=ROWS + 1)
    last = found[ROWS - 1].place if len(found) > ROWS else None
    more = "" if last is None else url("/backfills", number, state=state, after=last)
    return TargetsPage(state, found[:ROWS], more)
