"""The overview: what needs a person, what waits longest, and what just happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.requests import Now, TheBackend, TheReader
from assetflow.core.explain import not_started_words
from assetflow.core.values.words import at, colour_of, count, sign_of
from assetflow.ledger.read.consumers import ConsumerOverview
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter
from assetflow.operations.needs import Need, NeedKind, OldAsset, alike, too_old_now, too_old_soon, with_doing
from assetflow.web.happened import decisions_happened, happened, receipts_of, updates_happened
from assetflow.web.live import LateRun, LateRuns, look_again, states_address
from assetflow.web.pages import ThePages, address, url, wants_fragment

NEEDS = 3
# How much that needs a person is shown at first, and the address of all of it.
MOST, WHOLE = 12, "/?whole=true"


@dataclass(frozen=True)
class Line:
    """One thing that needs a person.

    Attributes:
        kind: the colour of its badge: `bad` or `wait`.
        badge: one word for what is wrong.
        what, page: the name of the thing, and the address of its page.
        words: what is wrong, in a few words.
        since: since when, if that is known.
        alike: the lines of all that failed alike, if this one stands for several.
    """

    kind: str
    badge: str
    what: str
    page: str
    words: str = ""
    since: datetime | None = None
    alike: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Lines:
    """The first few things of one kind that need a person, how many there are, and the list of them all."""

    shown: tuple[Line, ...]
    total: int
    all: str


# The list of all things of a kind.
_ALL: Mapping[NeedKind, str] = {
    "failed": "/runs?failed=true",
    "crashed": "/runs?failed=true",
    "failed check": "/assets",
    "undeliverable": "/activity?show=undeliverable",
    "missed deadline": "/consumers",
    "backfill failed": "/backfills",
    "backfill stopped": "/backfills",
    "refused deployment": "/consumers",
    "refused update": "/activity",
    "watcher": "/assets?show=watcher",
    "server": "/",
}


def needs(found: Sequence[Need], *, whole: bool) -> list[Lines]:
    """Return the lines of what needs a person, in its order; what failed alike is one line.

    Parameters:
        whole: all of them, however many there are.
    """
    groups = alike(found)
    shown = groups if whole else groups[:MOST]
    lines = [Lines((_together(each),), 1, _ALL[each[0].kind]) for each in shown]
    if left := sum(map(len, groups[len(shown) :])):
        lines[-1] = Lines(lines[-1].shown, 1 + left, WHOLE)
    return lines


def _together(group: Sequence[Need]) -> Line:
    first, *others = map(_needed, group)
    if not others:
        return first
    since = min((each.since for each in group if each.since is not None), default=None)
    what = f"{first.what} and {count(len(others), 'other')}"
    return replace(first, what=what, words=group[0].error, since=since, alike=(first, *others))


def _needed(need: Need) -> Line:
    below = f"; {count(need.below, 'flow')} further down" if need.below else ""
    kind = "wait" if need.kind == "backfill stopped" else "bad"
    badge = "failing" if need.kind == "watcher" else need.kind
    return Line(kind, badge, need.what, need.page, f"{need.words}{below}", need.since)


def late_runs(found: Sequence[LateRun]) -> Lines:
    """Return the runs that wait in a work pool."""
    shown = tuple(
        Line("wait", "late run", made.consumer_name, url("/runs", made.flow_run_id), not_started_words(run), run.since)
        for made, run in found[:NEEDS]
    )
    return Lines(shown, len(found), "/activity?show=late")


def others(reader: Reader, now: datetime, *, has_updates: bool) -> list[Lines]:
    """Return which assets are too old, and which consumers are paused or held.

    Parameters:
        has_updates: some update was recorded; before the first one, everything is missing, which is no alarm.
    """
    stopped, total = reader.consumers.listed(ConsumerFilter(active=False), "queued", limit=NEEDS)
    paused = Lines(tuple(map(_stopped, reader.consumers.overviews(stopped))), total, "/consumers?show=inactive")
    old = _old_assets(reader, now) if has_updates else ()
    return [each for each in (*old, paused) if each.total]


def _old_assets(reader: Reader, now: datetime) -> Iterator[Lines]:
    """Yield the assets that are too old, and those that will be, each with what is being done about it."""
    policies = reader.policies.all()
    old, soon = too_old_now(policies), too_old_soon(reader, policies, now)
    deadlines = {each.uri: deadline for deadline, each in soon}
    told = with_doing(reader, [*old[:NEEDS], *(each for _, each in soon[:NEEDS])], now)
    yield Lines(tuple(_old(each, now) for each in told if each.freshness.is_too_old), len(old), "/assets?show=old")
    coming = (each for each in told if not each.freshness.is_too_old)
    shown = tuple(
        Line(
            "wait",
            "fails soon",
            each.name,
            address(each.freshness.uri),
            f"at its deadline, {at(deadlines[each.freshness.uri])}, if nothing changes. {each.doing}",
        )
        for each in coming
    )
    yield Lines(shown, len(soon), "/assets?show=soon")


def _old(each: OldAsset, now: datetime) -> Line:
    record = each.freshness.record
    return Line(
        colour_of(sign_of(record.state)),
        record.state,
        each.name,
        address(each.freshness.uri),
        f"{each.freshness.describe(now)}. {each.doing}",
        record.state_since,
    )


def _stopped(each: ConsumerOverview) -> Line:
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
    return Line("wait", badge, each.name, url("/consumers", *each.name.split("/", 1)), words)


router = APIRouter()

WAITING = 7
HAPPENED = 5


@router.get("/")
def show_overview(
    request: Request, pages: ThePages, backend: TheBackend, reader: TheReader, now: Now, whole: bool = False
) -> Response:
    """Show the overview.

    Parameters:
        whole: show all that needs a person, however much it is.
    """
    late: LateRuns = request.app.state.late_runs
    status = reader.status()
    needed, rest = backend.needs(), others(reader, now, has_updates=bool(status.last_event))
    waiting, all_waiting = reader.queues.longest(now, limit=WAITING)
    entries = happened([*updates_happened(reader, None, None), *decisions_happened(reader, None, None)])[:HAPPENED]
    decisions = [each.decision for each in entries if each.decision is not None]
    return pages.show(
        request,
        "overview.html",
        fragment="live_part",
        status_now=status,
        maker="" if status.last_event else next(iter(reader.lineage.other_flows("", limit=1)), ""),
        needs=[*needs(needed, whole=whole), *rest],
        needed=len(needed) + sum(each.total for each in rest),
        here=WHOLE if whole else "/",
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
