"""The form that begins a backfill: it shows the runs, wave by wave, before they start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from assetflow.api.requests import Text, TheBackend
from assetflow.core.partitions.ranges import read_period
from assetflow.errors import AssetflowError, InvalidCall
from assetflow.ledger.read.reader import Reader
from assetflow.operations import backfill
from assetflow.operations.backfill import CONCURRENCY, BackfillWanted, asset_to_backfill, plan
from assetflow.operations.what_if import Preview, if_backfilled
from assetflow.web.forms import Form, TheForm, in_words
from assetflow.web.pages import Pages, ThePages, url
from assetflow.web.previews import show_preview

router = APIRouter()

MOST_AT_ONCE = 10_000
NEVER_MADE = 8
_FIELDS = ("asset", "start", "end", "keys", "down", "concurrency", "why")
Keys = Annotated[str, Query(max_length=20_000)]


@dataclass(frozen=True)
class Wave:
    """The runs of one flow in a wave."""

    number: int
    consumer: str
    keys: list[str]
    runs: int


@dataclass(frozen=True)
class ShownTargets:
    """The targets that a backfill would run, for the page.

    Attributes:
        known: how many keys of the asset in its first wave were updated before.
        new: those of them that were never updated.
    """

    runs: int
    waves: list[Wave]
    known: int
    new: list[str]


@router.get("/backfills/new")
def ask_for_backfill(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    asset: Text = "",
    start: Text = "",
    end: Text = "",
    keys: Keys = "",
    down: Text = "",
    concurrency: Text = str(CONCURRENCY),
    why: Text = "",
) -> Response:
    """Show the form, and what the backfill would run."""
    values = (asset, start, end, keys, down, concurrency, why)
    return _page(request, pages, backend.ledger.reader, Form(dict(zip(_FIELDS, values, strict=True))))


@router.get("/backfills/new/preview")
def preview_backfill(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    asset: Text = "",
    start: Text = "",
    end: Text = "",
    keys: Keys = "",
    down: Text = "",
) -> Response:
    """Show what the runs of the backfill would lead to besides themselves."""
    reader = backend.ledger.reader
    form = Form({"asset": asset, "start": start, "end": end, "keys": keys, "down": down})

    def preview() -> Preview:
        return if_backfilled(reader, plan(reader, read_wanted(reader, form)).waves(), backend.now())

    return show_preview(request, pages, preview, "When they have completed", "No other flow waits for what they make.")


@router.post("/backfills/new")
def begin_backfill(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Begin the backfill, and show its page."""
    reader = backend.ledger.reader
    try:
        wanted, concurrency = read_wanted(reader, form), read_concurrency(form)
        told = {"by": "the Backfills page", "why": form.text("why").strip()}
        made = backfill.begin(backend, wanted, plan(reader, wanted), concurrency=concurrency, **told)
    except AssetflowError as error:
        return _page(request, pages, reader, form.refused(**field_errors(error)), status=422)
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


def field_errors(error: AssetflowError) -> Mapping[str, str]:
    """Return the message of the error under the name of the form field that it is about."""
    return {error.where if error.where in _FIELDS else "form": in_words(error)}


def _page(request: Request, pages: Pages, reader: Reader, form: Form, *, status: int = 200) -> Response:
    """Show the form with what it would run, or with what is wrong with it."""
    shown, uri = None, ""
    if form.text("asset").strip():
        try:
            uri, _ = _asset(reader, form)
            read_concurrency(form)
            shown = _shown(reader, read_wanted(reader, form))
        except AssetflowError as error:
            form = form if form.errors else form.refused(**field_errors(error))
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
    waves = [
        Wave(number, name, [key for key in keys if key is not None], len(keys))
        for number, wave in enumerate(planned.waves(), 1)
        for name, keys in wave.items()
    ]
    # Nothing below the asset's own maker is in the first wave.
    first = waves[0].keys
    there = set(reader.partitions.keys(wanted.uri, since=min(first), until=max(first))) if first else set[str]()
    return ShownTargets(
        runs=len(planned.steps),
        waves=waves,
        known=sum(key in there for key in first),
        new=[key for key in first if key not in there],
    )
