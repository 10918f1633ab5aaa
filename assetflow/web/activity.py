"""The activity page: what triggered what, as trees, or as a list of updates and decisions; newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.requests import Backend, Now, Text, TheBackend, TheReader
from assetflow.core.explain.trace import Trace
from assetflow.errors import AssetflowError, InvalidCall, UnknownAsset, UnknownConsumer
from assetflow.ledger.read.reader import Reader
from assetflow.operations.decisions import replay
from assetflow.operations.graph import newest_traces, trace_of
from assetflow.operations.lookup import find_consumer, find_uri
from assetflow.operations.runs_by_hand import retry_ended
from assetflow.web.happened import ROWS, Happened, decisions_happened, happened, receipts_of, updates_happened
from assetflow.web.live import LateRun, LateRuns, look_again, states_address
from assetflow.web.pages import Form, NumberOrNone, Pages, TheForm, ThePages, in_words, url

router = APIRouter()

TREES = 12
# A tree shows so many lines beside others; on its own page, all.
LINES = 25
Show = Literal["", "all", "updates", "decisions", "waiting", "undeliverable", "late"]


async def late_runs(request: Request, show: Show = "") -> Sequence[LateRun]:
    """Return the runs that wait in a work pool, if the page shows these."""
    late: LateRuns = request.app.state.late_runs
    return await late.look() if show == "late" else ()


@router.get("/activity")
def show_activity(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    now: Now,
    late: Annotated[Sequence[LateRun], Depends(late_runs)],
    show: Show = "",
    asset: Text = "",
    consumer: Text = "",
    events: NumberOrNone = None,
    decisions: NumberOrNone = None,
) -> Response:
    """Show the newest trees of causes or, with a filter, a page of updates and decisions.

    Parameters:
        show: what to list; `all` for updates and decisions.
        asset: only updates of this asset, by name or URI.
        consumer: only decisions of this consumer.
        events, decisions: only events before this sequence, and decisions before this number.
        late: the runs that wait in a work pool.
    """
    if not (show or asset or consumer or events or decisions):
        return _show_traces(request, pages, newest_traces(reader, TREES, now))
    unknown, uri, number = _find_filters(reader, asset.strip(), consumer.strip())
    found: list[Happened] = []
    if not unknown:
        wants_events = show in ("", "all", "updates") and (number is None or uri is not None)
        wants_decisions = show not in ("updates", "late") and (uri is None or number is not None)
        found += updates_happened(reader, uri, events) if wants_events else []
        status = show if show in ("waiting", "undeliverable") else None
        found += decisions_happened(reader, number, decisions, status) if wants_decisions else []
        found += [Happened(made.made, decision=made) for made, _ in late if number in (None, made.consumer)]
        found = happened(found)
    shown = found[:ROWS]
    older = _older(shown, events, decisions) if len(found) > ROWS and show != "late" else None
    kept: dict[str, str] = {"show": show, "asset": asset, "consumer": consumer}
    made = [each.decision for each in shown if each.decision is not None]
    return pages.show(
        request,
        "activity.html",
        fragment="list",
        traces=None,
        found=shown,
        consumed=reader.decisions.consumed_assets([each.number for each in made]),
        receipts=receipts_of(reader, shown),
        unknown=unknown,
        show=show,
        asset=asset,
        consumer=consumer,
        here=url("/activity", **kept, events=events, decisions=decisions),
        newest=url("/activity", **kept) if events is not None or decisions is not None else "",
        older=url("/activity", **kept, **older) if older else "",
        again=look_again(made),
        states=states_address(made),
    )


@router.get("/activity/{tree:uuid}/retry")
def leave_retry(tree: UUID) -> Response:
    """Redirect to the tree: a browser asks for this address when a user reloads a refused retry."""
    return RedirectResponse(url("/activity", tree), 303)


@router.post("/activity/{tree:uuid}/retry")
async def retry_all(request: Request, pages: ThePages, backend: TheBackend, tree: UUID, form: TheForm) -> Response:
    """Let all runs of a line go on in Prefect, or all decisions of a line wait for their runs again."""
    try:
        done = await _retry(backend, form)
    except AssetflowError as error:
        refused = f"Nothing was changed. {in_words(error)}"
        return await run_in_threadpool(_tree, request, pages, backend, str(tree), status=409, refused=refused)
    return RedirectResponse(url("/activity", tree, **done), 303)


async def _retry(backend: Backend, form: Form) -> dict[str, int]:
    try:
        runs, made = ([UUID(each) for each in form.text(name).split()] for name in ("runs", "decisions"))
    except ValueError as error:
        raise InvalidCall("the form names no runs", where="runs") from error
    if runs:
        return {"retried": await retry_ended(backend.prefect, runs)}
    await run_in_threadpool(replay, backend, made)
    return {"replayed": len(made)}


@router.get("/activity/{what:path}")
def show_trace(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    what: Text,
    retried: NumberOrNone = None,
    replayed: NumberOrNone = None,
) -> Response:
    """Show what an update, a run, or the newest update of an asset led to. Contract 7.4.

    Parameters:
        retried: the number of runs that an operator has just let go on.
        replayed: the number of decisions that an operator has just let wait for their runs again.
    """
    return _tree(request, pages, backend, what, retried=retried, replayed=replayed)


def _tree(
    request: Request,
    pages: Pages,
    backend: Backend,
    what: str,
    *,
    status: int = 200,
    retried: int | None = None,
    replayed: int | None = None,
    refused: str = "",
) -> Response:
    found = trace_of(backend.ledger.reader, what, backend.now())
    return pages.show(
        request,
        "trace.html",
        fragment="live_part",
        status=status,
        trace=found,
        here=url("/activity", what),
        retried=retried,
        replayed=replayed,
        refused=refused,
        **_open_runs([found]),
    )


def _show_traces(request: Request, pages: Pages, found: Sequence[Trace]) -> Response:
    shown = [each.cut_to(LINES) for each in found]
    filters = dict.fromkeys(("unknown", "show", "asset", "consumer", "newest", "older"), "")
    content: dict[str, Any] = filters | {"found": (), "here": "/activity"} | _open_runs(shown)
    return pages.show(request, "activity.html", fragment="list", traces=shown, **content)


def _open_runs(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return what a page needs to follow the runs that go on."""
    runs = [run for each in traces for line in each.lines for run in line.runs]
    return {"again": look_again(runs), "states": states_address(runs)}


def _find_filters(reader: Reader, asset: str, consumer: str) -> tuple[str, str | None, int | None]:
    """Return a sentence about what is unknown (or an empty text), and the URI and the consumer's id of the filters."""
    try:
        uri = find_uri(reader, asset) if asset else None
        number = find_consumer(reader, consumer).consumer.id if consumer else None
    except (UnknownAsset, UnknownConsumer, ValueError) as error:
        return str(error), None, None
    return "", uri, number


def _older(shown: list[Happened], events: int | None, decisions: int | None) -> dict[str, int | None]:
    """Return where the next page begins: after the last update and the last decision shown."""
    sequences = [event.sequence for each in shown for event in each.events if event.sequence is not None]
    numbers = [each.decision.number for each in shown if each.decision is not None]
    return {"events": min(sequences, default=events), "decisions": min(numbers, default=decisions)}
