"""The dialogs of an asset's page: one creates an event, the other runs a flow that makes the asset."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.requests import NamedAsset, TheBackend, make_event
from assetflow.core.values.assets import Asset
from assetflow.errors import AssetflowError, InvalidEvent
from assetflow.operations.recording import update_asset
from assetflow.operations.runs_by_hand import Parameter, RunWanted, maker_of, parameters_of, read_typed, start_run
from assetflow.operations.what_if import Preview, if_run, if_updated
from assetflow.web.asset import Dialogs, asset_page, find
from assetflow.web.forms import SOMEBODY, Form, TheForm, in_words
from assetflow.web.pages import ThePages, url
from assetflow.web.previews import show_preview

router = APIRouter()

# The fields of a form that are parameters of the flow begin so.
TYPED = "parameter:"


@router.get("/asset/events")
def ask_for_event(request: Request, pages: ThePages, backend: TheBackend, asset: NamedAsset) -> Response:
    """Show the asset with the form that creates an event."""
    return asset_page(request, pages, backend, find(backend.ledger.reader, asset), dialogs=Dialogs("create-event"))


@router.post("/asset/events")
def create_event(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Record an update, and show its event."""
    found = find(backend.ledger.reader, form.text("asset"))
    try:
        extra = _object(form.text("extra"), "extra")
        key = form.text("partition_key") or None
        event = update_asset(backend, found.listed, event_id=form.key(), extra=extra, partition_key=key, by=SOMEBODY)
    except AssetflowError as error:
        dialogs = Dialogs(event_form=form.refused(**_field_errors(error)))
        return asset_page(request, pages, backend, found, status=422, dialogs=dialogs)
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


@router.get("/asset/materialize/parameters")
async def show_parameters(
    request: Request, pages: ThePages, backend: TheBackend, asset: NamedAsset, producer: str = ""
) -> Response:
    """Show the fields for the parameters of the flow that makes the asset, as a part of the dialog."""
    found = await run_in_threadpool(find, backend.ledger.reader, asset)
    try:
        _, deployment = maker_of(found.uri, found.users.producers, producer or min(found.users.producers, default=""))
        known = await parameters_of(backend.prefect, deployment)
    except AssetflowError:
        # What the dialog has already, one field for all of them, is enough to start a run.
        return Response(status_code=204)
    return await run_in_threadpool(
        pages.show, request, "parameters.html", fragment="fields", parameters=known, run_form=Form()
    )


@router.get("/asset/materialize")
def ask_to_materialize(request: Request, pages: ThePages, backend: TheBackend, asset: NamedAsset) -> Response:
    """Show the asset with the form that runs a flow."""
    return asset_page(request, pages, backend, find(backend.ledger.reader, asset), dialogs=Dialogs("materialize"))


@router.post("/asset/materialize")
async def materialize(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Run a flow that makes the asset, and show the run."""
    found = await run_in_threadpool(find, backend.ledger.reader, form.text("asset"))
    typed = {name[len(TYPED) :]: text for name, text in form.fields.items() if name.startswith(TYPED)}
    known: Sequence[Parameter] = ()
    try:
        _, deployment = maker_of(found.uri, found.users.producers, form.text("producer"))
        known = await parameters_of(backend.prefect, deployment) if typed else ()
        parameters = read_typed(known, typed) if typed else _object(form.text("parameters"), "parameters")
        wanted = RunWanted(parameters, form.text("partition_key") or None, once=form.key())
        run = await start_run(backend.prefect, deployment, wanted)
    except AssetflowError as error:
        named = {f"{TYPED}{error.where}": in_words(error)} if error.where in typed else _field_errors(error)
        dialogs = Dialogs(run_form=form.refused(**named), parameters=known)
        return await run_in_threadpool(asset_page, request, pages, backend, found, status=422, dialogs=dialogs)
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
