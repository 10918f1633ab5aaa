"""Pages of assets: the list, and one asset with what can be done to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.requests import LARGEST, Backend, NamedAsset, Text, TheBackend, make_event
from assetflow.core.explain.status import Status
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.core.values.addresses import redacted
from assetflow.core.values.assets import Asset
from assetflow.errors import AssetflowError, Conflict, InvalidEvent, LedgerForeign, UnknownAsset
from assetflow.ledger.read.assets import AssetFilter, AssetUsers, ListedAsset, Order
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import EventFilter
from assetflow.operations.lookup import find_uri, hide, near_assets, unhide
from assetflow.operations.needs import late_now, late_soon
from assetflow.operations.recording import update_asset
from assetflow.operations.runs_by_hand import Parameter, RunWanted, maker_of, parameters_of, read_typed, start_run
from assetflow.operations.what_if import Preview, if_run, if_updated
from assetflow.web.forms import Form, TheForm, in_words
from assetflow.web.pages import PagePlaces, Pages, ThePages, address, url, wants_fragment
from assetflow.web.plots import check_plots, metrics_words, plots_of, schema_changes
from assetflow.web.previews import show_preview

router = APIRouter()

ROWS = 50
Sort = Literal["name", "-name", "updated", "-updated", "group", "-group"]
Show = Literal["", "late", "soon", "fresh", "outdated", "stale", "missing", "watcher", "hidden"]

_ORDERS: Mapping[Sort, Order] = {
    "name": (("name", False),),
    "-name": (("name", True),),
    "updated": (("updated_at", True),),
    "-updated": (("updated_at", False),),
    "group": (("group", False), ("name", False)),
    "-group": (("group", True), ("name", False)),
}
_OF_STATUS: Mapping[Show, Callable[[Status], bool]] = {
    "fresh": lambda each: each.state == "fresh" and not each.outdated,
    "outdated": lambda each: each.state == "fresh" and each.outdated,
    "stale": lambda each: each.state == "stale",
    "missing": lambda each: each.state == "missing",
}
# Each filter with its label, and what there has to be so that it can find something.
_SHOWS: tuple[tuple[Show, str, str], ...] = (
    ("late", "Late", "policy"),
    ("soon", "Late at the next deadline", "policy"),
    ("fresh", "Fresh", "status"),
    ("outdated", "Fresh, outdated", "status"),
    ("stale", "Stale", "status"),
    ("missing", "Missing", "status"),
    ("watcher", "A watcher fails", "watcher"),
    ("hidden", "Hidden", ""),
)


@dataclass(frozen=True)
class AssetFilters:
    """Which assets the list shows.

    Attributes:
        show: those that are late under their freshness policy, or `soon` will be; those in a state; those with a
            `watcher` that fails; those that are hidden, instead of all others.
        offset: how many come before the page.
    """

    search: Text = ""
    group: Text = ""
    show: Show = ""
    sort: Sort = "name"
    offset: Annotated[int, Query(ge=0, le=LARGEST)] = 0

    def address(self, offset: int = 0) -> str:
        sort = "" if self.sort == "name" else self.sort
        return url("/assets", search=self.search, group=self.group, show=self.show, sort=sort, offset=offset or None)

    def sorted_by(self, order: Sort) -> str:
        """Return the address of the same list in another order."""
        return replace(self, sort=order).address()


@router.get("/assets")
def list_assets(
    request: Request, pages: ThePages, backend: TheBackend, asked: Annotated[AssetFilters, Depends()]
) -> Response:
    """Show a page of assets; if an Eager flow needs some, with the status of each."""
    reader, now = backend.ledger.reader, backend.now()
    policies = {each.uri: each for each in reader.policies.all()}
    compares = reader.freshness.compares()
    query = AssetFilter(search=asked.search.strip(), group=asked.group or None, hidden=asked.show == "hidden")
    query = replace(query, uris=_shown(backend, asked.show, list(policies.values())))
    found, total = reader.assets.page(query, _ORDERS[asked.sort], limit=ROWS, offset=asked.offset)
    uris = [each.record.uri for each in found]
    statuses = reader.freshness.statuses(uris, now) if compares else []
    return pages.show(
        request,
        "assets.html",
        fragment="list",
        found=found,
        has_uris=any(each.name != each.record.uri for each in found),
        statuses={each.uri: each for each in statuses},
        policies={uri: policies[uri] for uri in uris if uri in policies},
        now=now,
        users=reader.assets.users_of([each.record for each in found]),
        groups=[each for each in reader.assets.groups() if each],
        shows=_shows(reader, has_policies=bool(policies), compares=compares),
        search=asked.search,
        group=asked.group,
        show=asked.show,
        sort=asked.sort,
        by=asked.sorted_by,
        here=asked.address(asked.offset),
        places=PagePlaces.of(asked.address, asked.offset, ROWS, total),
    )


def _shown(backend: Backend, show: Show, policies: Sequence[AssetFreshness]) -> list[str] | None:
    """Return the URIs of the assets to list; `None` for all."""
    reader, now = backend.ledger.reader, backend.now()
    if show == "late":
        return [each.uri for each in late_now(policies)]
    if show == "soon":
        return [each.uri for _, each in late_soon(reader, policies, now)]
    if show == "watcher":
        return [asset.uri for each in reader.watchers.failing() for asset in each.assets]
    if show in _OF_STATUS:
        return [each.uri for each in reader.freshness.statuses(None, now) if _OF_STATUS[show](each)]
    return None


def _shows(reader: Reader, *, has_policies: bool, compares: bool) -> list[tuple[Show, str]]:
    """Return the filters that can find something, each with its label."""
    has = {"policy": has_policies, "status": compares, "watcher": reader.watchers.any(), "": True}
    return [(show, label) for show, label, needs in _SHOWS if has[needs]]


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


# The fields of a form that are parameters of the flow begin so.
TYPED = "parameter:"

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
        event = update_asset(
            backend, found.listed, event_id=form.key(), extra=extra, partition_key=key, by="the Assets view"
        )
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
    return asset_page(request, pages, backend, find(backend.ledger.reader, asset), form="materialize")


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
        refused = form.refused(**named)
        return await run_in_threadpool(
            asset_page, request, pages, backend, found, status=422, run_form=refused, parameters=known
        )
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
