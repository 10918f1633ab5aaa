"""The page of an asset, with its events, and the forms that create an event and materialize the asset."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.backend import Backend, TheBackend
from assetflow.api.paging import LARGEST
from assetflow.api.params import NamedAsset
from assetflow.api.posted_events import make_event
from assetflow.core.assets import Asset
from assetflow.core.redaction import redacted
from assetflow.errors import AssetflowError, InvalidEvent, UnknownAsset
from assetflow.ledger.read.assets import AssetUsers, ListedAsset
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter
from assetflow.operations.lookup import find_uri, near_assets
from assetflow.operations.recording import update_asset
from assetflow.operations.starting_runs import RunWanted, maker_of, start_run
from assetflow.operations.what_if import Preview, if_run, if_updated
from assetflow.web.forms import Form, TheForm, in_words
from assetflow.web.pages import Pages, ThePages, address, url
from assetflow.web.plots import metrics_words, plots_of
from assetflow.web.previews import show_preview

router = APIRouter()

EVENTS = 20
Place = Annotated[int | None, Query(ge=0, le=LARGEST)]


@dataclass(frozen=True)
class Found:
    """An asset, with the flows that make, read and run on it."""

    listed: ListedAsset
    users: AssetUsers

    @property
    def uri(self) -> str:
        return self.listed.record.uri


@router.get("/asset")
def show_asset(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    asset: NamedAsset,
    key: Annotated[str, Query(max_length=250)] = "",
    before: Place = None,
    at: datetime | None = None,
    started: UUID | None = None,
) -> Response:
    """Show an asset by URI or name, or similar assets if it is unknown.

    Parameters:
        at: the time in the middle of the partition map.
    """
    reader = backend.ledger.reader
    try:
        found = _find(reader, asset)
    except UnknownAsset:
        near = near_assets(reader, asset)
        return pages.show(request, "asset_unknown.html", status=404, asked=asset, near=near)
    return _page(request, pages, backend, found, key=key, before=before, at=at, started=started)


@router.get("/asset/events")
def ask_for_event(request: Request, pages: ThePages, backend: TheBackend, asset: NamedAsset) -> Response:
    """Show the asset with the form that creates an event."""
    return _page(request, pages, backend, _find(backend.ledger.reader, asset), form="create-event")


@router.post("/asset/events")
def create_event(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Record an update, and show its event."""
    found = _find(backend.ledger.reader, form.text("asset"))
    try:
        extra = _object(form.text("extra"), "extra")
        key = form.text("partition_key") or None
        event = update_asset(backend, found.listed, extra=extra, partition_key=key, by="the Assets view")
    except AssetflowError as error:
        return _page(request, pages, backend, found, status=422, event_form=form.refused(**_field_errors(error)))
    return RedirectResponse(url("/events", event.id), 303)


@router.get("/asset/events/preview")
def preview_event(
    request: Request, pages: ThePages, backend: TheBackend, asset: NamedAsset, partition_key: str = ""
) -> Response:
    """Show what an update would lead to, for the dialog that asks for it."""
    found, now = _find(backend.ledger.reader, asset), backend.now()

    def preview() -> Preview:
        event = make_event(Asset(found.uri), now, partition_key=partition_key or None)
        return if_updated(backend.ledger.reader, [event], now)

    return show_preview(request, pages, preview, "This update", "No consumer is scheduled on this asset.")


@router.get("/asset/materialize/preview")
def preview_run(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    asset: NamedAsset,
    producer: str = "",
    partition_key: str = "",
) -> Response:
    """Show what the run of a flow that makes the asset would lead to, for the dialog that asks for it."""
    found = _find(backend.ledger.reader, asset)

    def preview() -> Preview:
        flow, _ = maker_of(found.uri, found.users.producers, producer or min(found.users.producers, default=""))
        return if_run(backend.ledger.reader, flow, [partition_key or None], backend.now())

    return show_preview(request, pages, preview, "When it has completed", "No consumer waits for what it makes.")


@router.get("/asset/materialize")
def ask_to_materialize(request: Request, pages: ThePages, backend: TheBackend, asset: NamedAsset) -> Response:
    """Show the asset with the form that runs a flow."""
    return _page(request, pages, backend, _find(backend.ledger.reader, asset), form="materialize")


@router.post("/asset/materialize")
async def materialize(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Run a flow that makes the asset, and show the run."""
    found = await run_in_threadpool(_find, backend.ledger.reader, form.text("asset"))
    try:
        _, deployment = maker_of(found.uri, found.users.producers, form.text("producer"))
        parameters = _object(form.text("parameters"), "parameters")
        wanted = RunWanted(parameters, form.text("partition_key") or None)
        run = await start_run(backend.prefect, deployment, wanted)
    except AssetflowError as error:
        refused = form.refused(**_field_errors(error))
        return await run_in_threadpool(_page, request, pages, backend, found, status=422, run_form=refused)
    return RedirectResponse(url("/asset", asset=found.uri, started=run["id"]), 303)


def _find(reader: Reader, text: str) -> Found:
    uri = find_uri(reader, text)
    listed = reader.assets.get(uri=uri)
    if listed is None:
        raise UnknownAsset(f"no asset is called {text!r}")
    return Found(listed, reader.assets.users_of([listed.record])[uri])


def _page(
    request: Request,
    pages: Pages,
    backend: Backend,
    found: Found,
    *,
    status: int = 200,
    key: str = "",
    before: int | None = None,
    at: datetime | None = None,
    started: UUID | None = None,
    form: str = "",
    event_form: Form | None = None,
    run_form: Form | None = None,
) -> Response:
    reader = backend.ledger.reader
    query = EventFilter(
        uri=found.uri, partition_key=key or None, to_sequence=None if before is None else max(0, before - 1)
    )
    events = [redacted(event) for event in reader.events.find(query, newest_first=True, limit=EVENTS + 1)]
    shown = events[:EVENTS]
    here = address(found.uri)
    return pages.show(
        request,
        "asset.html",
        fragment="live_part",
        status=status,
        found=found,
        record=found.listed.record,
        name=found.listed.name,
        users=found.users,
        freshness=reader.policies.of_asset(found.uri),
        watchers=reader.watchers.of_asset(found.uri),
        now=backend.now(),
        events=shown,
        receipts=reader.receipts.counts([event.sequence for event in shown if event.sequence is not None]),
        plots=plots_of(shown) if before is None else [],
        has_metrics=any(event.metrics for event in shown),
        has_extra=any(event.extra for event in shown),
        metrics_words=metrics_words,
        has_keys=any(event.partition_key is not None for event in events),
        key=key,
        here=url("/asset", asset=found.uri, key=key, before=before),
        newest=url("/asset", asset=found.uri, key=key) if before is not None else "",
        older=url("/asset", asset=found.uri, key=key, before=shown[-1].sequence) if len(events) > EVENTS else "",
        address=here,
        has_status=reader.freshness.compares(),
        partitions=url("/asset/partitions", asset=found.uri, key=key, at=at.isoformat() if at else None),
        started=started,
        open=form,
        event_form=event_form or Form(),
        run_form=run_form or Form(),
    )


def _object(text: str, field: str) -> dict[str, Any]:
    """Parse the JSON object in a field; an empty field gives an empty object."""
    try:
        value: object = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidEvent(f"not valid JSON{place}", where=field, fix='Write it as {"rows": 12}') from error
    if not isinstance(value, dict):
        raise InvalidEvent("not a JSON object", where=field, fix='Write it as {"rows": 12}')
    return cast("dict[str, Any]", value)


def _field_errors(error: AssetflowError) -> dict[str, str]:
    """Return the message of the error under the name of the form field that it is about."""
    field = error.where if error.where in ("extra", "partition_key", "parameters", "producer") else "form"
    return {field: in_words(error)}
