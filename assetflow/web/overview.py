"""The start page: what needs a person, what waits longest and for what, and what just happened."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.backend import TheBackend
from assetflow.web.happened import decisions_happened, happened, receipts_of, updates_happened
from assetflow.web.late_runs import LateRuns
from assetflow.web.needs import late_runs, needs
from assetflow.web.pages import ThePages, wants_fragment
from assetflow.web.prefect_runs import look_again, states_address

router = APIRouter()

WAITING = 7
HAPPENED = 7


@router.get("/")
def show_overview(request: Request, pages: ThePages, backend: TheBackend) -> Response:
    """Show the overview."""
    reader, now = backend.ledger.reader, backend.now()
    late: LateRuns = request.app.state.late_runs
    status = reader.status()
    waiting, all_waiting = reader.waiting.longest(now, limit=WAITING)
    entries = happened([*updates_happened(reader, None, None), *decisions_happened(reader, None, None)])[:HAPPENED]
    decisions = [each.decision for each in entries if each.decision is not None]
    return pages.show(
        request,
        "overview.html",
        fragment="live_part",
        status_now=status,
        needs=needs(reader, status, now),
        late=late_runs(late.shown()),
        waiting=waiting,
        all_waiting=all_waiting,
        found=entries,
        consumed=reader.decisions.consumed_assets([each.number for each in decisions]),
        receipts=receipts_of(reader, entries),
        again=look_again(decisions),
        states=states_address(decisions),
    )


@router.get("/overview/late-runs")
async def show_late_runs(request: Request, pages: ThePages, alone: bool = False) -> Response:
    """Show the runs that wait in a work pool, as a part of the overview.

    Parameters:
        alone: nothing else needs a person.
    """
    if not wants_fragment(request):
        return RedirectResponse("/", 303)
    late: LateRuns = request.app.state.late_runs
    found = late_runs(await late.look())
    return await run_in_threadpool(
        pages.show, request, "overview.html", fragment="late_runs", late=found, needs=not alone
    )
