"""The page of an asset: whether it is up to date, its events, and its flows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from assetflow.api.requests import LARGEST, Backend, NamedAsset, Text, TheBackend
from assetflow.core.values.addresses import redacted
from assetflow.errors import Conflict, LedgerForeign, UnknownAsset
from assetflow.ledger.read.assets import AssetUsers, ListedAsset
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter
from assetflow.operations.lookup import find_uri, hide, near_assets, unhide
from assetflow.operations.needs import late_soon
from assetflow.operations.runs_by_hand import Parameter
from assetflow.web.forms import Form, TheForm, in_words
from assetflow.web.pages import Pages, ThePages, address, url, wants_fragment
from assetflow.web.plots import check_plots, metrics_words, plots_of, schema_changes

router = APIRouter()

EVENTS = 20


@dataclass(frozen=True)
class AssetAndUsers:
    """An asset, with the flows that make, read and run on it."""

    listed: ListedAsset
    users: AssetUsers

    @property
    def uri(self) -> str:
        return self.listed.record.uri


def find(reader: Reader, text: str) -> AssetAndUsers:
    """Return the asset that a user names.

    Raises:
        UnknownAsset: the ledger has no such asset.
    """
    uri = find_uri(reader, text)
    listed = reader.assets.get(uri=uri)
    if listed is None:
        raise UnknownAsset(f"no asset is called {text!r}")
    return AssetAndUsers(listed, reader.assets.users_of([listed.record])[uri])


def asset_page(
    request: Request,
    pages: Pages,
    backend: Backend,
    found: AssetAndUsers,
    *,
    status: int = 200,
    key: str = "",
    before: int | None = None,
    at: datetime | None = None,
    started: UUID | None = None,
    form: str = "",
    event_form: Form | None = None,
    run_form: Form | None = None,
    parameters: Sequence[Parameter] = (),
    refused: str = "",
) -> Response:
    """Show an asset.

    Parameters:
        form: the dialog that is open.
        event_form, run_form: what was typed into them, with what is wrong with it.
        parameters: those of the flow to run, if they are known; without them, the dialog asks for them.
        refused: why nothing was changed.
    """
    reader = backend.ledger.reader
    policy = reader.policies.of_asset(found.uri)
    query = EventFilter(
        uri=found.uri, partition_key=key or None, to_sequence=None if before is None else max(0, before - 1)
    )
    events = [redacted(event) for event in reader.events.find(query, newest_first=True, limit=EVENTS + 1)]
    shown = events[:EVENTS]
    here, compares = address(found.uri), reader.freshness.compares()
    return pages.show(
        request,
        "asset.html",
        fragment="live_part",
        status=status,
        found=found,
        record=found.listed.record,
        name=found.listed.name,
        users=found.users,
        freshness=policy,
        data_path=[] if policy is None else reader.freshness.data_path(found.uri),
        deadline=None if policy is None else policy.record.policy.next_deadline(backend.now()),
        is_late_soon=policy is not None and bool(late_soon(reader, [policy], backend.now())),
        watchers=reader.watchers.of_asset(found.uri),
        now=backend.now(),
        events=shown,
        receipts=reader.receipts.counts([event.sequence for event in shown if event.sequence is not None]),
        plots=plots_of(shown) if before is None else [],
        checks=check_plots(reader.checks.history(found.uri, key or None)) if before is None else [],
        state=reader.freshness.states([found.uri]).get(found.uri) if compares else None,
        has_versions=any(event.data_version not in (None, str(event.id)) for event in shown),
        has_metrics=any(event.metrics for event in shown),
        has_extra=any(event.extra for event in shown),
        metrics_words=metrics_words,
        schema_changes=schema_changes(events),
        has_keys=any(event.partition_key is not None for event in events),
        key=key,
        here=url("/asset", asset=found.uri, key=key, before=before),
        newest=url("/asset", asset=found.uri, key=key) if before is not None else "",
        older=url("/asset", asset=found.uri, key=key, before=shown[-1].sequence) if len(events) > EVENTS else "",
        address=here,
        has_status=compares,
        partitions=url("/asset/partitions", asset=found.uri, key=key, at=at.isoformat() if at else None),
        failed_makers=reader.ended_runs.failed_makers([found.uri]),
        started=started,
        refused=refused,
        open=form,
        event_form=event_form or Form(),
        run_form=run_form or Form(),
        parameters=parameters,
    )


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


@router.get("/asset/hide")
@router.get("/asset/unhide")
def leave_hiding(asset: Text = "") -> Response:
    """Redirect to the asset: a browser asks for this address when a user reloads a refused change."""
    return RedirectResponse(url("/asset", asset=asset) if asset else "/assets", 303)


@router.post("/asset/hide")
def hide_asset(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Hide an asset, and show its page."""
    return _change(request, pages, backend, form, lambda asset: hide(backend, asset, by="the Assets view"))


@router.post("/asset/unhide")
def unhide_asset(request: Request, pages: ThePages, backend: TheBackend, form: TheForm) -> Response:
    """Show an asset again, and show its page."""
    return _change(request, pages, backend, form, lambda asset: unhide(backend, asset))


def _change(request: Request, pages: Pages, backend: Backend, form: Form, change: Callable[[str], str]) -> Response:
    found = find(backend.ledger.reader, form.text("asset"))
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
    backend: TheBackend,
    asset: NamedAsset,
    key: Annotated[str, Query(max_length=250)] = "",
) -> Response:
    """Show the status as a part of the asset's page; the part is empty if no Eager flow needs the asset."""
    reader, now = backend.ledger.reader, backend.now()
    uri = find_uri(reader, asset)
    listed = reader.assets.get(uri=uri)
    told = reader.freshness.status(uri, key or None, now)
    return pages.show(
        request,
        "asset_status.html",
        fragment="status",
        uri=uri,
        name=uri if listed is None else listed.name,
        key=key,
        told=told,
        causes=told.causes[:CAUSES],
        readers=reader.freshness.readers(uri, now),
        # The page of the asset lists its events, which brought them.
        versions=() if wants_fragment(request) else reader.freshness.versions(uri, key or None, limit=VERSIONS),
    )
