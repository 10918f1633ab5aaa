"""What needs a person, by kind: each with the first few things, and the list of them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.requests import TheBackend
from assetflow.core.explain import not_started_words
from assetflow.core.values.words import at, count
from assetflow.ledger.read.consumers import ConsumerOverview
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter, ConsumerRecord, LedgerCounts
from assetflow.operations.planning import LateAsset, late_now, late_soon, with_doing
from assetflow.web.happened import decisions_happened, happened, receipts_of, updates_happened
from assetflow.web.pages import ThePages, address, url, wants_fragment
from assetflow.web.prefect_runs import LateRun, LateRuns, look_again, states_address

NEEDS = 4
LINES = 7


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


def needs(reader: Reader, status: LedgerCounts, now: datetime) -> list[Needs]:
    """Return what needs a person, the worst first, with so few lines that they fit on a screen."""
    groups = [each for each in _needs(reader, status, now) if each.total]
    most = max(1, LINES // max(1, len(groups)))
    return [replace(each, shown=each.shown[:most]) for each in groups]


def late_runs(found: Sequence[LateRun]) -> Needs:
    """Return the runs that wait in a work pool."""
    shown = tuple(
        Need("wait", "late run", made.consumer_name, url("/runs", made.flow_run_id), not_started_words(run), run.since)
        for made, run in found[:NEEDS]
    )
    return Needs(shown, len(found), "/activity?show=late")


def _needs(reader: Reader, status: LedgerCounts, now: datetime) -> Iterator[Needs]:
    failed, total = reader.consumers.listed(ConsumerFilter(failed=True), limit=NEEDS)
    yield Needs(tuple(_failed(reader, failed)), total, "/consumers?show=failed")

    undeliverable = reader.decisions.find(status="undeliverable", limit=NEEDS)
    shown = tuple(
        Need("bad", "undeliverable", each.consumer_name, url("/decisions", each.id), each.error, each.made)
        for each in undeliverable
    )
    yield Needs(shown, status.undeliverable, "/activity?show=undeliverable")

    failing = reader.watchers.failing()
    shown = tuple(
        Need("bad", "failing", each.name, address(each.assets[0].uri) if each.assets else "", each.error, each.since)
        for each in failing[:NEEDS]
    )
    yield Needs(shown, len(failing), "/assets?show=watcher")

    yield from _late_assets(reader, now)

    stopped, total = reader.consumers.listed(ConsumerFilter(active=False), "queued", limit=NEEDS)
    yield Needs(tuple(map(_stopped, reader.consumers.overviews(stopped))), total, "/consumers?show=inactive")


def _late_assets(reader: Reader, now: datetime) -> Iterator[Needs]:
    """Yield the assets that are late, and those that will be, each with what is being done about it."""
    policies = reader.policies.all()
    late, soon = late_now(policies), late_soon(reader, policies, now)
    deadlines = {each.uri: deadline for deadline, each in soon}
    told = with_doing(reader, [*late[:NEEDS], *(each for _, each in soon[:NEEDS])], now)
    yield Needs(tuple(_late(each, now) for each in told if each.freshness.is_late), len(late), "/assets?show=late")
    coming = (each for each in told if not each.freshness.is_late)
    shown = tuple(
        Need(
            "wait",
            "late soon",
            each.name,
            address(each.freshness.uri),
            f"at its deadline, {at(deadlines[each.freshness.uri])}, if nothing changes. {each.doing}",
        )
        for each in coming
    )
    yield Needs(shown, len(soon), "/assets?show=soon")


def _late(each: LateAsset, now: datetime) -> Need:
    record = each.freshness.record
    is_over = record.state == "fail"
    return Need(
        "bad" if is_over else "wait",
        "late" if is_over else "getting old",
        each.name,
        address(each.freshness.uri),
        f"{each.freshness.describe(now)}. {each.doing}",
        record.state_since,
    )


def _stopped(each: ConsumerOverview) -> Need:
    consumer = each.record.consumer
    if consumer.schedule.keeping is not None:
        words = "one run follows when it goes on"
    elif each.queued:
        words = f"{count(each.queued, 'update')} queued meanwhile"
    elif consumer.options.while_paused == "drop":
        words = "updates are dropped meanwhile"
    else:
        words = "nothing is queued"
    badge = "paused" if consumer.paused else "held"
    return Need("wait", badge, each.name, url("/consumers", *each.name.split("/", 1)), words)


def _failed(reader: Reader, failed: list[ConsumerRecord]) -> Iterator[Need]:
    """Yield each consumer with how its last run ended."""
    for each in reader.consumers.overviews(failed):
        last = each.last
        if last is not None:
            page = url("/runs", last.flow_run_id) if last.flow_run_id else url("/decisions", last.id)
            state = last.run_state.lower() or last.status
            words = last.error or f"its last run; `assetflow retry {each.name}` lets it try again"
            yield Need("bad", state, each.name, page, words, last.ended or last.made)


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
