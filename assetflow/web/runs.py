"""Pages of runs, of decisions and of events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.requests import LARGEST, Backend, Text, TheBackend, TheReader
from assetflow.core.values.addresses import redacted
from assetflow.errors import AssetflowError, UnknownConsumer
from assetflow.ledger.read.explanations import READ_FIRST, decision_explanation, event_explanation
from assetflow.ledger.read.pruning import RunsOfDay
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord, EventFilter
from assetflow.operations import decisions
from assetflow.operations.lookup import decision_with, find_consumer
from assetflow.operations.needs import list_runs, with_reasons
from assetflow.operations.runs_by_hand import retry_ended, run_again
from assetflow.prefect_io.flow_runs import MOST
from assetflow.prefect_io.open_runs import with_run_now
from assetflow.prefect_io.run_ends import RunInPrefect, run_in_prefect
from assetflow.web.live import SECONDS_TO_ANSWER, RunStates, look_again, states_address
from assetflow.web.pages import NumberOrNone, PagePlaces, Pages, TheForm, ThePages, in_words, url
from assetflow.web.plots import metric_words

router = APIRouter()

ROWS = 50
DAYS = 14
HEIGHT = 48


@dataclass(frozen=True)
class Bar:
    """The runs of one day, as a bar of the picture above the list.

    Attributes:
        page: the address of the list of this day.
        height, failed_height: of all runs, and of those that failed, in pixels.
    """

    day: date
    ended: int
    failed: int
    page: str
    height: float
    failed_height: float


@router.get("/runs")
def show_runs(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    failed: bool = False,
    day: Text = "",
    flow: Text = "",
    key: Text = "",
    before: NumberOrNone = None,
) -> Response:
    """Show a page of runs, newest first.

    Parameters:
        failed: only runs that failed or crashed.
        day: only runs that ended on this day (UTC): `today`, or as 2026-11-20; anything else is every day.
        flow: only runs of this flow and deployment, or of a flow with one deployment.
        before: only runs before this number.
    """
    reader, now, of = backend.ledger.reader, backend.now(), _name(backend.ledger.reader, flow.strip())
    since, until = _day(day, now)
    wanted = {"failed": failed, "since": since, "until": until, "flow": of or None, "target_key": key.strip() or None}
    found = list_runs(reader, **wanted, before=before, limit=ROWS + 1)  # type: ignore[arg-type]
    shown = found[:ROWS]
    kept = {"failed": "true" if failed else "", "flow": flow, "key": key}
    is_first = before is None and not failed and day in ("", "today")
    going_on = _going_on(reader, of, key.strip()) if is_first else []
    return pages.show(
        request,
        "runs.html",
        fragment="list",
        found=shown,
        going_on=going_on,
        consumed=reader.decisions.consumed_assets([each.number for each in going_on]),
        bars=_bars(reader.ended_runs.days(_first_day(now), of or None), now, kept),
        failed=failed,
        day=day,
        flow=flow,
        key=key,
        here=url("/runs", **kept, day=day, before=before),
        newest=url("/runs", **kept, day=day) if before is not None else "",
        older=url("/runs", **kept, day=day, before=shown[-1].number) if len(found) > ROWS else "",
        again=look_again(going_on),
        states=states_address(going_on),
    )


def _name(reader: Reader, flow: str) -> str:
    """Return the `flow/deployment` that a text names; a flow that is no consumer is named in full."""
    with suppress(UnknownConsumer, ValueError):
        return find_consumer(reader, flow).consumer.name if flow else ""
    return flow


def _going_on(reader: Reader, flow: str, key: str) -> list[DecisionRecord]:
    """Return the decisions whose runs go on, newest first."""
    running = reader.decisions.running(limit=None)
    found = [each for each in running if flow in ("", each.consumer_name) and key in ("", each.target_key)]
    return found[::-1][:ROWS]


def _day(text: str, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the begin and the end of a day; nothing for a text that is none."""
    try:
        day = now.date() if text == "today" else date.fromisoformat(text)
    except ValueError:
        return None, None
    start = datetime.combine(day, time(), UTC)
    return start, start + timedelta(days=1)


def _first_day(now: datetime) -> datetime:
    return datetime.combine(now.date() - timedelta(days=DAYS - 1), time(), UTC)


def _bars(days: Sequence[RunsOfDay], now: datetime, kept: dict[str, str]) -> list[Bar]:
    """Return the bars of the last days, also of those without a run; none if nothing ended."""
    counts = {date.fromisoformat(each.day): each for each in days}
    most = max((each.ended for each in days), default=0)
    if not most:
        return []
    found: list[Bar] = []
    for place in range(DAYS):
        day = _first_day(now).date() + timedelta(days=place)
        of = counts.get(day) or RunsOfDay(str(day), 0, 0)
        heights = (round(HEIGHT * number / most, 1) for number in (of.ended, of.failed))
        found.append(Bar(day, of.ended, of.failed, url("/runs", **kept, day=str(day)), *heights))
    return found


CONSUMED = 100
PRODUCED = 100


@router.get("/runs/{flow_run}")
def show_run(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    flow_run: UUID,
    retried: bool = False,
    started: UUID | None = None,
) -> Response:
    """Show what the ledger knows about a flow run or, if it is unknown, what it may be.

    Parameters:
        retried: an operator has just let it run again in Prefect.
        started: the run that an operator has just started with what this one was given.
    """
    record = backend.ledger.reader.decisions.of_run(flow_run)
    return _page(request, pages, backend, record, flow_run, retried=retried, started=started)


@router.get("/runs/{flow_run}/end")
async def show_end(request: Request, pages: ThePages, backend: TheBackend, flow_run: UUID) -> Response:
    """Show how the run stands in Prefect: its message, the end of its log, and what puts it right if it has failed."""
    found: RunInPrefect | None = None
    answered = False
    with suppress(AssetflowError, TimeoutError):
        async with asyncio.timeout(SECONDS_TO_ANSWER), backend.prefect() as api:
            found, answered = await run_in_prefect(api, flow_run), True
    show = partial(_end, request, pages, backend.ledger.reader, flow_run)
    return await run_in_threadpool(show, found, answered=answered)


def _end(
    request: Request, pages: Pages, reader: Reader, flow_run: UUID, found: RunInPrefect | None, *, answered: bool
) -> Response:
    record = reader.decisions.of_run(flow_run)
    consumed = [] if record is None else reader.decisions.consumed_assets([record.number]).get(record.number, [])
    ended = None if found else reader.ended_runs.get(flow_run)
    return pages.show(
        request,
        "run_end.html",
        error=ended.error if ended else "",
        fragment="end",
        flow_run=flow_run,
        record=record,
        consumed=consumed,
        found=found,
        answered=answered,
    )


@router.post("/runs/{flow_run}/retry")
async def retry(request: Request, pages: ThePages, backend: TheBackend, flow_run: UUID, _form: TheForm) -> Response:
    """Let the run go on in Prefect, with what it was given."""

    async def act() -> str:
        await retry_ended(backend.prefect, [flow_run])
        return url("/runs", flow_run, retried="yes")

    return await _acted(request, pages, backend, flow_run, act)


@router.post("/runs/{flow_run}/again")
async def start_again(
    request: Request, pages: ThePages, backend: TheBackend, flow_run: UUID, form: TheForm
) -> Response:
    """Start a new run with what the run was given."""

    async def act() -> str:
        return url("/runs", flow_run, started=await run_again(backend.prefect, flow_run, form.key()))

    return await _acted(request, pages, backend, flow_run, act)


async def _acted(
    request: Request, pages: Pages, backend: Backend, flow_run: UUID, act: Callable[[], Awaitable[str]]
) -> Response:
    """Act, and redirect to the address that `act` returns; or show the run with the reason why nothing was changed."""
    try:
        return RedirectResponse(await act(), 303)
    except AssetflowError as error:
        refused = f"Nothing was changed. {in_words(error)}"
    record = await run_in_threadpool(backend.ledger.reader.decisions.of_run, flow_run)
    return await run_in_threadpool(_page, request, pages, backend, record, flow_run, status=409, refused=refused)


@router.get("/decisions/{decision_id}")
def show_decision(request: Request, pages: ThePages, backend: TheBackend, decision_id: UUID) -> Response:
    """Redirect to the page of the decision's run or, without a run, show why it has none."""
    record = decision_with(backend.ledger.reader, decision_id)
    if record.flow_run_id is not None:
        return RedirectResponse(url("/runs", record.flow_run_id), 303)
    return _page(request, pages, backend, record, None)


@router.post("/decisions/{decision_id}/replay")
def replay(request: Request, pages: ThePages, backend: TheBackend, decision_id: UUID, _form: TheForm) -> Response:
    """Make an undeliverable decision wait for its run again. Contract 4.6."""
    record = decision_with(backend.ledger.reader, decision_id)
    try:
        decisions.replay(backend, [decision_id])
    except AssetflowError as error:
        refused = f"Nothing was changed. {in_words(error)}"
        return _page(request, pages, backend, record, record.flow_run_id, status=409, refused=refused)
    return RedirectResponse(url("/decisions", decision_id), 303)


def _page(
    request: Request,
    pages: Pages,
    backend: Backend,
    record: DecisionRecord | None,
    flow_run: UUID | None,
    *,
    status: int = 200,
    refused: str = "",
    retried: bool = False,
    started: UUID | None = None,
) -> Response:
    reader = backend.ledger.reader
    told = None if record is None else decision_explanation(reader, record, READ_FIRST)
    if told is not None:
        told = with_run_now(told, backend.now(), backend.prefect)
    produced = [] if flow_run is None else reader.events.find(EventFilter(flow_run_id=flow_run), limit=PRODUCED + 1)
    source = next((event.source_flow_run for event in produced), None)
    ended = None if flow_run is None or told is not None else reader.ended_runs.get(flow_run)
    consumed = [] if told is None else told.oldest_events(CONSUMED)
    return pages.show(
        request,
        "run.html",
        fragment="live_part",
        status=status if told or produced or ended else 404,
        refused=refused,
        retried=retried,
        started=started,
        record=record,
        told=told,
        flow_run=flow_run,
        source=source,
        ended=None if ended is None else with_reasons(reader, [ended])[0],
        again=look_again([record]),
        states=states_address([record]),
        consumed=[redacted(event) for event in consumed],
        more_consumed=0 if told is None else told.consumed - len(consumed),
        produced=[redacted(event) for event in produced[:PRODUCED]],
        more_produced=len(produced) > PRODUCED,
        here=url("/runs", flow_run) if flow_run is not None else url("/decisions", record.id if record else ""),
    )


RECEIPTS = 50


@router.get("/events/{event_id}")
def show_event(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    event_id: UUID,
    offset: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
) -> Response:
    """Show an event with a page of its receipts, in the same words as the command line and the API."""
    told = event_explanation(reader, event_id, limit=RECEIPTS, offset=offset)

    def at(place: int) -> str:
        return url("/events", event_id, offset=place or None)

    return pages.show(
        request,
        "event.html",
        fragment="receipts",
        told=told,
        event=redacted(told.event),
        metric_words=metric_words,
        states=states_address(each.decision.run for each in told.receipts if each.decision is not None),
        here=at(offset),
        places=PagePlaces.of(at, offset, RECEIPTS, told.total_receipts),
    )


@router.get("/run-states")
async def show_run_badges(
    request: Request, pages: ThePages, runs: Annotated[str, Query(max_length=40 * MOST)] = ""
) -> Response:
    """Answer with the badges of these runs, which htmx puts in their places."""
    states: RunStates = request.app.state.run_states
    wanted: list[UUID] = []
    for text in runs.split(",")[:MOST]:
        with suppress(ValueError):
            wanted.append(UUID(text))
    await states.look(wanted)
    known = {run: name for run in wanted if (name := states.shown(run))}
    return pages.bare(request, "run_states.html", known=known)
