"""Pages of backfills: the form that begins one, the list, and how far each has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from assetflow.api.requests import LARGEST, Backend, Now, Number, Text, TheBackend, TheReader
from assetflow.core.freshness.records import Backfill, StepState
from assetflow.core.partitions.ranges import read_period
from assetflow.core.rules.ended_runs import run_name
from assetflow.core.values.keeping import Cause
from assetflow.core.values.words import count, rounded_in_words
from assetflow.errors import AssetflowError, Conflict, InvalidCall, LedgerForeign, UnknownAsset
from assetflow.ledger.read.backfills import BackfillPreview, BackfillRecord, BackfillTargetRecord
from assetflow.ledger.read.reader import Reader
from assetflow.operations import backfill
from assetflow.operations.backfill import CONCURRENCY, BackfillWanted, asset_to_backfill, find_backfill, plan
from assetflow.operations.lookup import find_uri, near_assets
from assetflow.operations.what_if import if_backfilled
from assetflow.web.pages import SOMEBODY, Form, NumberOrNone, Pages, TheForm, ThePages, in_words, url
from assetflow.web.previews import show_preview

router = APIRouter()

MOST_AT_ONCE = 10_000
NEVER_MADE = 8
_FIELDS = ("asset", "start", "end", "keys", "down", "concurrency", "why")


@dataclass(frozen=True)
class ShownTargets:
    """The targets that a backfill would run, for the page.

    Attributes:
        planned: all of them, wave by wave.
        known: how many keys of the asset in its first wave were updated before.
        new: those of them that were never updated.
    """

    planned: BackfillPreview
    known: int
    new: list[str]


@dataclass(frozen=True)
class BackfillFields:
    """The fields of the form, in an address."""

    asset: Text = ""
    start: Text = ""
    end: Text = ""
    keys: Annotated[str, Query(max_length=20_000)] = ""
    down: Text = ""
    concurrency: Text = str(CONCURRENCY)
    why: Text = ""

    @property
    def form(self) -> Form:
        return Form(asdict(self))


TheFields = Annotated[BackfillFields, Depends()]


@router.get("/backfills/new")
def ask_for_backfill(request: Request, pages: ThePages, reader: TheReader, asked: TheFields) -> Response:
    """Show the form, and what the backfill would run."""
    return _page(request, pages, reader, asked.form)


@router.get("/backfills/new/preview")
def preview_backfill(request: Request, pages: ThePages, reader: TheReader, now: Now, asked: TheFields) -> Response:
    """Show what the runs of the backfill would lead to besides themselves."""
    return show_preview(
        request,
        pages,
        lambda: if_backfilled(reader, plan(reader, read_wanted(reader, asked.form)).waves(), now),
        "When they have completed",
        "No other flow waits for what they make.",
    )


@router.post("/backfills/new")
def begin_backfill(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Begin the backfill, and show its page."""
    reader = backend.ledger.reader
    try:
        wanted, concurrency = read_wanted(reader, form), read_concurrency(form)
        told = {"by": SOMEBODY, "why": form.text("why").strip()}
        made = backfill.begin(backend, wanted, plan(reader, wanted), concurrency=concurrency, **told)
    except AssetflowError as error:
        return _page(request, pages, reader, form.refused_by(error, _FIELDS), status=422)
    return RedirectResponse(url("/backfills", made.number), 303)


def read_wanted(reader: Reader, form: Form) -> BackfillWanted:
    """Return the backfill that a form describes.

    Raises:
        UnknownAsset: no asset is called so.
        InvalidCall: half of a range is given, the range ends before it starts, or keys are given with it.
        InvalidPartition: an end of the range is not a time.
    """
    uri, below = _asset(reader, form)
    down = below or bool(form.text("down"))
    keys = tuple(line.strip() for line in form.text("keys").splitlines() if line.strip())
    first, last = form.text("start").strip(), form.text("end").strip()
    if keys and (first or last):
        raise InvalidCall("keys and a range cannot be given together", where="keys", fix="Give one of them")
    if not (first or last):
        return BackfillWanted(uri, down, keys)
    begin, until = (_period(name, text or first or last) for name, text in (("start", first), ("end", last)))
    if until[1] <= begin[0]:
        raise InvalidCall(f"{last} is before {first}", where="end", fix="Exchange them")
    return BackfillWanted(uri, down, range=(begin[0], until[1]))


def read_concurrency(form: Form) -> int:
    """Return how many runs may go on at a time.

    Raises:
        InvalidCall: it is not a number from 1 to 10,000.
    """
    text = form.text("concurrency").strip()
    if text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) <= MOST_AT_ONCE:
        return int(text)
    raise InvalidCall(f"{text!r} is not a number from 1 to {MOST_AT_ONCE:,}", where="concurrency")


def _page(request: Request, pages: Pages, reader: Reader, form: Form, *, status: int = 200) -> Response:
    """Show the form with what it would run, or with what is wrong with it."""
    shown, uri = None, ""
    if form.text("asset").strip():
        try:
            uri, _ = _asset(reader, form)
            read_concurrency(form)
            shown = _shown(reader, read_wanted(reader, form))
        except AssetflowError as error:
            form = form if form.errors else form.refused_by(error, _FIELDS)
    return pages.show(
        request,
        "backfill_form.html",
        fragment="plan",
        status=status,
        form=form,
        uri=uri,
        shown=shown,
        most=NEVER_MADE,
        preview=url("/backfills/new/preview", **{name: form.text(name) for name in _FIELDS[:5]}),
    )


def _asset(reader: Reader, form: Form) -> tuple[str, bool]:
    try:
        return asset_to_backfill(reader, form.text("asset").strip())
    except AssetflowError as error:
        raise error.at("asset") from error


def _period(field: str, text: str) -> tuple[datetime, datetime]:
    try:
        return read_period(text)
    except AssetflowError as error:
        raise error.at(field) from error


def _shown(reader: Reader, wanted: BackfillWanted) -> ShownTargets:
    planned = plan(reader, wanted)
    shown = planned.shown(wanted.uri, down=wanted.down, most=len(planned.steps))
    # Nothing below the asset's own maker is in the first wave.
    first = shown.waves[0][0].target_keys
    there = set(reader.partitions.keys(wanted.uri, since=min(first), until=max(first))) if first else set[str]()
    return ShownTargets(
        planned=shown,
        known=sum(key in there for key in first),
        new=[key for key in first if key not in there],
    )


ROWS = 50
STATES: tuple[tuple[StepState, str], ...] = (
    ("asked", "running"),
    ("failed", "failed"),
    ("todo", "waiting"),
    ("done", "done"),
    ("removed", "taken off"),
)
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
    request: Request, pages: ThePages, reader: TheReader, asset: Text = "", before: NumberOrNone = None
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
    return _backfill_page(request, pages, reader, number, state, after)


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
        return _backfill_page(request, pages, backend.ledger.reader, number, None, -1, status=409, refused=refused)
    return RedirectResponse(url("/backfills", number), 303)


def _backfill_page(
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
