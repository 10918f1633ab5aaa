"""One asset: what it is, what surrounds it, its events, and the two things to do with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.backend import Backend, TheBackend
from assetflow.api.paging import LARGEST, Text
from assetflow.api.schemas.airflow import MaterializeIn
from assetflow.api.v2.asset_events import record_update
from assetflow.api.v2.materialize import start_run
from assetflow.core.partitions import check_key
from assetflow.core.redaction import redacted
from assetflow.errors import AssetflowError, InvalidEvent, InvalidPartition, UnknownAsset
from assetflow.ledger.catalog import AssetUsers, ListedAsset
from assetflow.ledger.lookup import find_uri, near_assets
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import EventQuery
from assetflow.web.forms import Form, TheForm
from assetflow.web.pages import Pages, ThePages, address, url

router = APIRouter()

EVENTS = 20
Asked = Annotated[Text, Query(min_length=1)]
Place = Annotated[int | None, Query(ge=0, le=LARGEST)]


@dataclass(frozen=True)
class Found:
    """An asset, and who has to do with it."""

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
    asset: Asked,
    key: Annotated[str, Query(max_length=250)] = "",
    before: Place = None,
    started: UUID | None = None,
) -> Response:
    """An asset by URI or name; of an unknown one, what comes near."""
    reader = backend.ledger.reader
    try:
        found = _find(reader, asset)
    except UnknownAsset:
        near = near_assets(reader, asset)
        return pages.show(request, "asset_unknown.html", status=404, asked=asset, near=near)
    return _page(request, pages, backend, found, key=key, before=before, started=started)


@router.post("/asset/events")
def create_event(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Record an update, and show what became of it."""
    found = _find(backend.ledger.reader, form.text("asset"))
    try:
        extra = _object(form.text("extra"), "extra")
        event = record_update(backend, found.listed, extra, form.text("partition_key") or None, by="the Assets view")
    except AssetflowError as error:
        return _page(request, pages, backend, found, status=422, event_form=form.refused(**_told(error)))
    return RedirectResponse(url("/events", event.id), 303)


@router.post("/asset/materialize")
async def materialize(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Run a flow that makes the asset, and show the run."""
    found = await run_in_threadpool(_find, backend.ledger.reader, form.text("asset"))
    try:
        deployment = _chosen(found, form.text("producer"))
        run = await start_run(backend, deployment, _wanted(form))
    except AssetflowError as error:
        refused = form.refused(**_told(error))
        return await run_in_threadpool(_page, request, pages, backend, found, status=422, run_form=refused)
    return RedirectResponse(url("/asset", asset=found.uri, started=run["id"]), 303)


def _find(reader: Reader, text: str) -> Found:
    uri = find_uri(reader, text)
    listed = reader.catalog.asset(uri=uri)
    if listed is None:
        raise UnknownAsset(f"no asset is called {text!r}")
    return Found(listed, reader.catalog.users_of([listed.record])[uri])


def _page(
    request: Request,
    pages: Pages,
    backend: Backend,
    found: Found,
    *,
    status: int = 200,
    key: str = "",
    before: int | None = None,
    started: UUID | None = None,
    event_form: Form | None = None,
    run_form: Form | None = None,
) -> Response:
    reader = backend.ledger.reader
    query = EventQuery(
        uri=found.uri, partition_key=key or None, to_sequence=None if before is None else max(0, before - 1)
    )
    events = [redacted(event) for event in reader.events(query, newest_first=True, limit=EVENTS + 1)]
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
        events=shown,
        receipts=reader.event_catalog.receipts_of([event.sequence for event in shown if event.sequence is not None]),
        has_keys=any(event.partition_key is not None for event in events),
        key=key,
        here=url("/asset", asset=found.uri, key=key, before=before),
        newest=url("/asset", asset=found.uri, key=key) if before is not None else "",
        older=url("/asset", asset=found.uri, key=key, before=shown[-1].sequence) if len(events) > EVENTS else "",
        address=here,
        started=started,
        event_form=event_form or Form(),
        run_form=run_form or Form(),
    )


def _chosen(found: Found, name: str) -> UUID:
    """The deployment that is to run: the only one, or the one that was chosen."""
    producers = found.users.producers
    if not producers:
        raise UnknownAsset(f"no deployed flow declares to make {found.uri}", where="form")
    if name not in producers and len(producers) > 1:
        raise UnknownAsset("several flows make this asset", where="producer", fix="Choose one of them")
    return producers.get(name) or next(iter(producers.values()))


def _wanted(form: Form) -> MaterializeIn:
    key = form.text("partition_key")
    try:
        checked = check_key(key) if key else None
    except AssetflowError as error:
        raise InvalidPartition(error.message, where="partition_key", fix=error.fix) from error
    return MaterializeIn(conf=_object(form.text("parameters"), "parameters"), partition_key=checked)


def _object(text: str, field: str) -> dict[str, Any]:
    """The JSON object that somebody typed; nothing is an empty one."""
    try:
        value: object = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidEvent(f"this is no JSON{place}", where=field, fix='Write it as {"rows": 12}') from error
    if not isinstance(value, dict):
        raise InvalidEvent("this is no JSON object", where=field, fix='Write it as {"rows": 12}')
    return cast("dict[str, Any]", value)


def _told(error: AssetflowError) -> dict[str, str]:
    """What is wrong, beside the field that it is about."""
    field = error.where if error.where in ("extra", "partition_key", "parameters", "producer") else "form"
    message = error.message[:1].upper() + error.message[1:].rstrip(".")
    return {field: f"{message}. {error.fix}".strip()}
