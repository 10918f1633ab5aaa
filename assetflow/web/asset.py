"""The page of an asset: whether it is up to date, its events, its flows, and dialogs to create an event or a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, cast
from uuid import UUID, uuid4

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.requests import Backend, NamedAsset, Now, Text, TheAsset, TheBackend, TheReader
from assetflow.core.values.addresses import redacted
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Origin, event_by_hand
from assetflow.errors import AssetflowError, Conflict, InvalidEvent, LedgerForeign, UnknownAsset
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter
from assetflow.operations.lookup import FoundAsset, find_asset, hide, near_assets, unhide
from assetflow.operations.needs import too_old_soon
from assetflow.operations.recording import update_asset
from assetflow.operations.runs_by_hand import Parameter, RunWanted, maker_of, parameters_of, read_typed, start_run
from assetflow.operations.what_if import Preview, if_run, if_updated
from assetflow.web.pages import (
    SOMEBODY,
    Form,
    NumberOrNone,
    Pages,
    TheForm,
    ThePages,
    address,
    in_words,
    url,
    wants_fragment,
)
from assetflow.web.plots import check_plots, metrics_words, plots_of, schema_changes
from assetflow.web.previews import show_preview

router = APIRouter()

EVENTS = 20
_FIELDS = ("extra", "partition_key", "parameters", "producer")
# The fields of a form that are parameters of the flow begin so.
TYPED = "parameter:"


@dataclass(frozen=True)
class AssetView:
    """What an address asks an asset's page for.

    Attributes:
        key: only the events of this partition.
        before: only events before this one.
        at: the time in the middle of the partition map.
        started: the run that somebody has just started here.
    """

    key: Annotated[str, Query(max_length=250)] = ""
    before: NumberOrNone = None
    at: datetime | None = None
    started: UUID | None = None


@dataclass(frozen=True)
class Dialogs:
    """The dialogs of an asset's page.

    Attributes:
        open: the one that is open; "" for none.
        event_form, run_form: what was typed into them, with what is wrong with it.
        parameters: those of the flow to run, if they are known; without them, the dialog asks for them.
    """

    open: str = ""
    event_form: Form = field(default_factory=Form)
    run_form: Form = field(default_factory=Form)
    parameters: Sequence[Parameter] = ()


def asset_page(
    request: Request,
    pages: Pages,
    backend: Backend,
    found: FoundAsset,
    *,
    status: int = 200,
    view: AssetView = AssetView(),
    dialogs: Dialogs = Dialogs(),
    refused: str = "",
) -> Response:
    """Show an asset; `refused` is why nothing was changed."""
    return pages.show(
        request,
        "asset.html",
        fragment="live_part",
        status=status,
        found=found,
        record=found.listed.record,
        name=found.listed.name,
        users=found.users,
        now=backend.now(),
        started=view.started,
        refused=refused,
        **vars(dialogs),
        **_state(backend, found.uri),
        **_events(backend.ledger.reader, found.uri, view),
        **_addresses(found.uri, view),
    )


def _state(backend: Backend, uri: str) -> dict[str, object]:
    """Return how up to date an asset is, and what keeps it so."""
    reader, now = backend.ledger.reader, backend.now()
    policy, compares = reader.policies.of_asset(uri), reader.freshness.compares()
    return {
        "freshness": policy,
        "data_path": [] if policy is None else reader.freshness.data_path(uri),
        "deadline": None if policy is None else policy.record.policy.next_deadline(now),
        "is_too_old_soon": policy is not None and bool(too_old_soon(reader, [policy], now)),
        "has_status": compares,
        "state": reader.freshness.states([uri]).get(uri) if compares else None,
        "watchers": reader.watchers.of_asset(uri),
        "failed_makers": reader.ended_runs.failed_makers([uri]),
    }


def _events(reader: Reader, uri: str, view: AssetView) -> dict[str, object]:
    """Return a page of the events of an asset or a partition; the first page has the plots."""
    key, before = view.key or None, view.before
    query = EventFilter(uri=uri, partition_key=key, to_sequence=None if before is None else max(0, before - 1))
    events = [redacted(event) for event in reader.events.find(query, newest_first=True, limit=EVENTS + 1)]
    shown = events[:EVENTS]
    return {
        "events": shown,
        "receipts": reader.receipts.counts([event.sequence for event in shown if event.sequence is not None]),
        "plots": plots_of(shown) if before is None else [],
        "checks": check_plots(reader.checks.history(uri, key)) if before is None else [],
        "has_versions": any(event.data_version not in (None, str(event.id)) for event in shown),
        "has_metrics": any(event.metrics for event in shown),
        "has_extra": any(event.extra for event in shown),
        "has_keys": any(event.partition_key is not None for event in events),
        "metrics_words": metrics_words,
        "schema_changes": schema_changes(events),
        "older": url("/asset", asset=uri, key=key, before=shown[-1].sequence) if len(events) > EVENTS else "",
    }


def _addresses(uri: str, view: AssetView) -> dict[str, str]:
    """Return the addresses of the page, its newest events and its map."""
    key, at = view.key, view.at
    return {
        "key": key,
        "address": address(uri),
        "here": url("/asset", asset=uri, key=key, before=view.before),
        "newest": "" if view.before is None else url("/asset", asset=uri, key=key),
        "partitions": url("/asset/partitions", asset=uri, key=key, at=at.isoformat() if at else None),
    }


@router.get("/asset")
def show_asset(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    reader: TheReader,
    asset: NamedAsset,
    view: Annotated[AssetView, Depends()],
) -> Response:
    """Show an asset by URI or name, or similar assets if it is unknown."""
    try:
        found = find_asset(reader, asset)
    except UnknownAsset:
        near = near_assets(reader, asset)
        return pages.show(request, "asset_unknown.html", status=404, asked=asset, near=near)
    return asset_page(request, pages, backend, found, view=view)


@router.get("/asset/hide")
@router.get("/asset/unhide")
def leave_hiding(asset: Text = "") -> Response:
    """Redirect to the asset: a browser asks for this address when a user reloads a refused change."""
    return RedirectResponse(url("/asset", asset=asset) if asset else "/assets", 303)


@router.post("/asset/hide")
def hide_asset(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Hide an asset, and show its page."""
    return _change(request, pages, backend, form, lambda asset: hide(backend, asset, by=SOMEBODY))


@router.post("/asset/unhide")
def unhide_asset(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Show an asset again, and show its page."""
    return _change(request, pages, backend, form, lambda asset: unhide(backend, asset))


def _change(request: Request, pages: Pages, backend: Backend, form: Form, change: Callable[[str], str]) -> Response:
    found = find_asset(backend.ledger.reader, form.text("asset"))
    try:
        return RedirectResponse(url("/asset", asset=change(found.uri)), 303)
    except (Conflict, LedgerForeign) as error:
        refused = f"Nothing was changed. {in_words(error)}"
        return asset_page(request, pages, backend, found, status=409, refused=refused)


CAUSES = 10
VERSIONS = 8


@router.get("/asset/status")
def show_status(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    now: Now,
    found: TheAsset,
    key: Annotated[str, Query(max_length=250)] = "",
) -> Response:
    """Show the status as a part of the asset's page; the part is empty if no Eager flow needs the asset."""
    uri, is_part = found.uri, wants_fragment(request)
    told = reader.freshness.status(uri, key or None, now)
    return pages.show(
        request,
        "asset_status.html",
        fragment="status",
        uri=uri,
        name=found.listed.name,
        key=key,
        told=told,
        causes=told.causes[:CAUSES] if is_part else told.causes,
        readers=reader.freshness.readers(uri, now),
        # The page of the asset lists its events, which brought them.
        versions=() if is_part else reader.freshness.versions(uri, key or None, limit=VERSIONS),
    )


@router.get("/asset/events")
def ask_for_event(request: Request, pages: ThePages, backend: TheBackend, found: TheAsset) -> Response:
    """Show the asset with the form that creates an event."""
    return asset_page(request, pages, backend, found, dialogs=Dialogs("create-event"))


@router.post("/asset/events")
def create_event(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Record an update, and show its event."""
    found = find_asset(backend.ledger.reader, form.text("asset"))
    try:
        extra = _object(form.text("extra"), "extra")
        key = form.text("partition_key") or None
        event = update_asset(backend, found.listed, event_id=form.key(), extra=extra, partition_key=key, by=SOMEBODY)
    except AssetflowError as error:
        dialogs = Dialogs(event_form=form.refused_by(error, _FIELDS))
        return asset_page(request, pages, backend, found, status=422, dialogs=dialogs)
    return RedirectResponse(url("/events", event.id), 303)


@router.get("/asset/events/preview")
def preview_event(
    request: Request, pages: ThePages, reader: TheReader, now: Now, found: TheAsset, partition_key: str = ""
) -> Response:
    """Show what an update would lead to, for the dialog that asks for it."""

    def preview() -> Preview:
        asset, key = Asset(found.uri), partition_key or None
        event = event_by_hand(asset, id=uuid4(), occurred=now, origin=Origin("api"), partition_key=key)
        return if_updated(reader, [event], now)

    return show_preview(request, pages, preview, "This update", "No consumer is scheduled on this asset.")


@router.get("/asset/materialize/preview")
def preview_run(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    now: Now,
    found: TheAsset,
    producer: str = "",
    partition_key: str = "",
) -> Response:
    """Show what the run of a flow that makes the asset would lead to, for the dialog that asks for it."""

    def preview() -> Preview:
        flow, _ = maker_of(found.uri, found.users.producers, producer or min(found.users.producers, default=""))
        return if_run(reader, flow, [partition_key or None], now)

    return show_preview(request, pages, preview, "When it has completed", "No consumer waits for what it makes.")


@router.get("/asset/materialize/parameters")
async def show_parameters(
    request: Request, pages: ThePages, backend: TheBackend, found: TheAsset, producer: str = ""
) -> Response:
    """Show the fields for the parameters of the flow that makes the asset, as a part of the dialog."""
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
def ask_to_materialize(request: Request, pages: ThePages, backend: TheBackend, found: TheAsset) -> Response:
    """Show the asset with the form that runs a flow."""
    return asset_page(request, pages, backend, found, dialogs=Dialogs("materialize"))


@router.post("/asset/materialize")
async def materialize(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Run a flow that makes the asset, and show the run."""
    found = await run_in_threadpool(find_asset, backend.ledger.reader, form.text("asset"))
    typed = {name[len(TYPED) :]: text for name, text in form.fields.items() if name.startswith(TYPED)}
    known: Sequence[Parameter] = ()
    try:
        _, deployment = maker_of(found.uri, found.users.producers, form.text("producer"))
        known = await parameters_of(backend.prefect, deployment) if typed else ()
        parameters = read_typed(known, typed) if typed else _object(form.text("parameters"), "parameters")
        wanted = RunWanted(parameters, form.text("partition_key") or None, once=form.key())
        run = await start_run(backend.prefect, deployment, wanted)
    except AssetflowError as error:
        typed_error = {f"{TYPED}{error.where}": in_words(error)}
        refused = form.refused(**typed_error) if error.where in typed else form.refused_by(error, _FIELDS)
        dialogs = Dialogs(run_form=refused, parameters=known)
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
