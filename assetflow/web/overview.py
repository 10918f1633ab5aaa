"""The start page: what needs a person, what waits longest and for what, and what just happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.backend import Backend, TheBackend
from assetflow.core.explanation import NotStarted, not_started_words
from assetflow.core.words import count
from assetflow.errors import AssetflowError
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter, ConsumerRecord, DecisionRecord, Status
from assetflow.prefect_io.not_started import not_started
from assetflow.web.happened import decisions_happened, happened, updates_happened
from assetflow.web.pages import ThePages, address, url, wants_fragment
from assetflow.web.refresh import look_again
from assetflow.web.run_states import states_address

router = APIRouter()

NEEDS = 4
LINES = 7
WAITING = 7
HAPPENED = 7
LATE_RUNS = 200


@dataclass(frozen=True)
class Need:
    """One thing that needs a person.

    Attributes:
        kind: the colour of its badge: `bad` or `wait`.
        badge: one word for what is wrong.
        what, page: the name of the thing, and the address of its page.
        words: what is wrong, in a few words.
        since: since when, if that is known.
    """

    kind: str
    badge: str
    what: str
    page: str
    words: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class Needs:
    """The first few things of one kind that need a person, how many there are, and the list of them all."""

    shown: tuple[Need, ...]
    total: int
    all: str


@router.get("/")
def show_overview(request: Request, pages: ThePages, backend: TheBackend) -> Response:
    """Show the overview."""
    reader, now = backend.ledger.reader, backend.now()
    status = reader.status()
    waiting, all_waiting = reader.waiting.longest(now, limit=WAITING)
    entries = happened([*updates_happened(reader, None, None), *decisions_happened(reader, None, None)])[:HAPPENED]
    decisions = [each.decision for each in entries if each.decision is not None]
    return pages.show(
        request,
        "overview.html",
        fragment="live_part",
        status_now=status,
        needs=_fitting([each for each in _needs(reader, status, now) if each.total]),
        waiting=waiting,
        all_waiting=all_waiting,
        found=entries,
        consumed=reader.decisions.consumed_assets([each.number for each in decisions]),
        receipts=reader.receipts.counts(
            [each.event.sequence for each in entries if each.event is not None and each.event.sequence is not None]
        ),
        again=look_again(decisions),
        states=states_address(decisions),
    )


@router.get("/overview/late-runs")
async def show_late_runs(request: Request, pages: ThePages, backend: TheBackend) -> Response:
    """Show the runs that wait in a work pool, as a part of the overview. Prefect is asked in one request."""
    if not wants_fragment(request):
        return RedirectResponse("/", 303)
    running = await run_in_threadpool(backend.ledger.reader.decisions.running, limit=LATE_RUNS)
    found = await _late(backend, running)
    by_run = {each.flow_run_id: each for each in running if each.flow_run_id is not None}
    late = [
        Need("wait", "late", by_run[run].consumer_name, url("/runs", run), not_started_words(each), each.since)
        for run, each in sorted(found.items(), key=lambda item: item[1].since)
    ]
    shown = Needs(tuple(late[:NEEDS]), len(late), "/consumers?show=active")
    return await run_in_threadpool(pages.show, request, "overview.html", fragment="late_runs", late=shown)


async def _late(backend: Backend, running: list[DecisionRecord]) -> Mapping[UUID, NotStarted]:
    runs = [each.flow_run_id for each in running if each.flow_run_id is not None]
    if not runs:
        return {}
    try:
        async with backend.prefect() as api:
            return await not_started(api, runs, backend.now())
    except AssetflowError:
        # A banner on each page says that Prefect does not answer.
        return {}


def _fitting(groups: list[Needs]) -> list[Needs]:
    """Return the groups with so few lines that they fit on a screen."""
    most = max(1, LINES // max(1, len(groups)))
    return [replace(each, shown=each.shown[:most]) for each in groups]


def _needs(reader: Reader, status: Status, now: datetime) -> Iterator[Needs]:
    """Yield what needs a person, the worst first."""
    failed, total = reader.consumers.listed(ConsumerFilter(failed=True), limit=NEEDS)
    yield Needs(tuple(_failed(reader, failed)), total, "/consumers?show=failed")

    undeliverable = reader.decisions.find(status="undeliverable", limit=NEEDS)
    shown = tuple(
        Need("bad", "undeliverable", each.consumer_name, url("/decisions", each.id), each.error, each.made)
        for each in undeliverable
    )
    yield Needs(shown, status.undeliverable, "/activity?show=undeliverable")

    failing = [each for each in reader.watchers.all() if each.error and not each.paused]
    shown = tuple(
        Need("bad", "failing", each.name, address(each.assets[0].uri) if each.assets else "", each.error, each.since)
        for each in failing[:NEEDS]
    )
    yield Needs(shown, len(failing), "/assets")

    late = sorted((each for each in reader.policies.all() if each.is_late), key=lambda each: each.record.state)
    shown = tuple(
        Need(
            "bad" if each.record.state == "fail" else "wait",
            "late" if each.record.state == "fail" else "soon late",
            each.uri,
            address(each.uri),
            each.describe(now),
            each.record.state_since,
        )
        for each in late[:NEEDS]
    )
    yield Needs(shown, len(late), "/assets?late=true")

    stopped, total = reader.consumers.listed(ConsumerFilter(active=False, waiting=True), limit=NEEDS)
    shown = tuple(
        Need(
            "wait",
            "paused" if each.record.consumer.paused else "held",
            each.name,
            url("/consumers", *each.name.split("/", 1)),
            f"{count(each.queued, 'update')} queued meanwhile",
        )
        for each in reader.consumers.overviews(stopped)
    )
    yield Needs(shown, total, "/consumers?show=inactive")


def _failed(reader: Reader, failed: list[ConsumerRecord]) -> Iterator[Need]:
    """Yield each consumer with how its last run ended."""
    for each in reader.consumers.overviews(failed):
        last = each.last
        if last is not None:
            page = url("/runs", last.flow_run_id) if last.flow_run_id else url("/decisions", last.id)
            state = last.run_state.lower() or last.status
            yield Need("bad", state, each.name, page, last.error or "its last run", last.ended or last.made)
