"""The page of an asset, with its events, and the forms that create an event and materialize the asset."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.backend import TheBackend
from assetflow.api.params import NamedAsset
from assetflow.api.posted_events import make_event
from assetflow.api.requests import LARGEST
from assetflow.core.values.assets import Asset
from assetflow.errors import AssetflowError, InvalidEvent, UnknownAsset
from assetflow.operations.lookup import near_assets
from assetflow.operations.recording import update_asset
from assetflow.operations.starting_runs import RunWanted, maker_of, start_run
from assetflow.operations.what_if import Preview, if_run, if_updated
from assetflow.web.asset_contents import asset_page, find
from assetflow.web.forms import TheForm, in_words
from assetflow.web.pages import ThePages, url
from assetflow.web.previews import show_preview

router = APIRouter()

Place = Annotated[int | None, Query(ge=0, le=LARGEST)]


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
        found = find(reader, asset)
    except UnknownAsset:
        near = near_assets(reader, asset)
        return pages.show(request, "asset_unknown.html", status=404, asked=asset, near=near)
    return asset_page(request, pages, backend, found, key=key, before=before, at=at, started=started)


@router.get("/asset/events")
def ask_for_event(request: Request, pages: ThePages, backend: TheBackend, asset: NamedAsset) -> Response:
    """Show the asset with the form that creates an event."""
    return asset_page(request, pages, backend, find(backend.ledger.reader, asset), form="create-event")


@router.post("/asset/events")
def create_event(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Record an update, and show its event."""
    found = find(backend.ledger.reader, form.text("asset"))
    try:
        extra = _object(form.text("extra"), "extra")
        key = form.text("partition_key") or None
        event = update_asset(backend, found.listed, extra=extra, partition_key=key, by="the Assets view")
    except AssetflowError as error:
        return asset_page(request, pages, backend, found, status=422, event_form=form.refused(**_field_errors(error)))
    return RedirectResponse(url("/events", event.id), 303)


@router.get("/asset/events/preview")
def preview_event(
    request: Request, pages: ThePages, backend: TheBackend, asset: NamedAsset, partition_key: str = ""
) -> Response:
    """Show what an update would lead to, for the dialog that asks for it."""
    found, now = find(backend.ledger.reader, asset), backend.now()

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
    found = find(backend.ledger.reader, asset)

    def preview() -> Preview:
        flow, _ = maker_of(found.uri, found.users.producers, producer or min(found.users.producers, default=""))
        return if_run(backend.ledger.reader, flow, [partition_key or None], backend.now())

    return show_preview(request, pages, preview, "When it has completed", "No consumer waits for what it makes.")


@router.get("/asset/materialize")
def ask_to_materialize(request: Request, pages: ThePages, backend: TheBackend, asset: NamedAsset) -> Response:
    """Show the asset with the form that runs a flow."""
    return asset_page(request, pages, backend, find(backend.ledger.reader, asset), form="materialize")


@router.post("/asset/materialize")
async def materialize(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Run a flow that makes the asset, and show the run."""
    found = await run_in_threadpool(find, backend.ledger.reader, form.text("asset"))
    try:
        _, deployment = maker_of(found.uri, found.users.producers, form.text("producer"))
        parameters = _object(form.text("parameters"), "parameters")
        wanted = RunWanted(parameters, form.text("partition_key") or None)
        run = await start_run(backend.prefect, deployment, wanted)
    except AssetflowError as error:
        refused = form.refused(**_field_errors(error))
        return await run_in_threadpool(asset_page, request, pages, backend, found, status=422, run_form=refused)
    return RedirectResponse(url("/asset", asset=found.uri, started=run["id"]), 303)


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
