"""The page of a consumer: why it runs or does not, its queue and decisions, and the forms of an operator."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.backend import Backend, TheBackend
from assetflow.api.params import Deployment, Flow
from assetflow.api.requests import LARGEST
from assetflow.errors import AssetflowError, InvalidCall, PrefectUnreachable, UnknownEvent
from assetflow.ledger.records import ConsumerRecord
from assetflow.operations import queue
from assetflow.operations.consumers import consumer_at, switch
from assetflow.operations.lookup import Selection
from assetflow.operations.starting_runs import RunWanted, start_run
from assetflow.operations.what_if import Preview, if_resumed, if_run
from assetflow.web import consumer_contents as contents
from assetflow.web.forms import Form, TheForm, in_words
from assetflow.web.pages import Pages, ThePages, url, wants_fragment
from assetflow.web.previews import show_preview

router = APIRouter()

Key = Annotated[str, Query(max_length=250)]
Place = Annotated[int | None, Query(ge=0, le=LARGEST)]


class Notice(TypedDict, total=False):
    """The result of an operator's last action, for the page to show; `refused` is the reason if it failed."""

    started: UUID | None
    asked: str
    removed: int | None
    refused: str


@router.get("/consumers/{flow}/{deployment}")
def show_consumer(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    flow: Flow,
    deployment: Deployment,
    key: Key = "",
    before: Place = None,
    started: UUID | None = None,
    asked: Annotated[str, Query(max_length=10)] = "",
    removed: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
    at: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """Show a consumer or, with a key, one of its partitions.

    Parameters:
        at: explain why it ran, or did not, at this time, UTC, too.
        started: the run that an operator has just started here.
        removed: the number of events that an operator has just removed here.
        asked: `pause` or `resume`, if an operator has just asked Prefect for it.
    """
    record = consumer_at(backend.ledger.reader, flow, deployment)
    # Let the page reload until the evaluator has the change from Prefect; then drop `asked` from the address.
    waits = asked in ("pause", "resume") and (asked == "pause") != record.consumer.paused
    notice: Notice = {"started": started, "asked": asked if waits else "", "removed": removed}
    answered = bool(asked) and not waits
    plain = contents.place(record, key=key, before=before, **notice)
    if answered and not wants_fragment(request):
        return RedirectResponse(plain, 303)
    page = _page(request, pages, backend, record, key=key, before=before, notice=notice, at=at)
    if answered:
        page.headers["hx-replace-url"] = plain
    return page


@router.get("/consumers/{flow}/{deployment}/switch")
def leave_switch(flow: Flow, deployment: Deployment) -> Response:
    """Redirect to the consumer: a browser asks for this address when a user reloads a failed switch."""
    return RedirectResponse(url("/consumers", flow, deployment), 303)


@router.post("/consumers/{flow}/{deployment}/switch")
async def switch_consumer(
    request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment, form: TheForm
) -> Response:
    """Pause or resume the consumer, as the switch of its automation in Prefect does."""
    record = await run_in_threadpool(consumer_at, backend.ledger.reader, flow, deployment)
    paused = form.text("paused") == "yes"
    try:
        await switch(backend.prefect, record, paused=paused)
    except AssetflowError as error:
        status = 503 if isinstance(error, PrefectUnreachable) else 409
        notice: Notice = {"refused": f"Nothing was changed. {in_words(error)}"}
        return await run_in_threadpool(_page, request, pages, backend, record, status=status, notice=notice)
    return RedirectResponse(contents.place(record, asked="pause" if paused else "resume"), 303)


@router.get("/consumers/{flow}/{deployment}/switch/preview")
def preview_resume(
    request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment
) -> Response:
    """Show what a resume would lead to; nothing if the consumer is not paused."""
    reader = backend.ledger.reader
    record = consumer_at(reader, flow, deployment)
    if not record.consumer.paused:
        return Response(media_type="text/html")

    def preview() -> Preview:
        return if_resumed(reader, record, backend.now())

    return show_preview(request, pages, preview, "If you resume it now", "Nothing is queued: no run would start.")


@router.get("/consumers/{flow}/{deployment}/run/preview")
def preview_run(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    flow: Flow,
    deployment: Deployment,
    partition_key: str = "",
) -> Response:
    """Show what a run of the consumer would lead to, for the dialog that asks for it."""
    reader = backend.ledger.reader
    record = consumer_at(reader, flow, deployment)

    def preview() -> Preview:
        return if_run(reader, record.consumer.name, [partition_key or None], backend.now())

    return show_preview(request, pages, preview, "When it has completed", "No consumer waits for what it makes.")


@router.get("/consumers/{flow}/{deployment}/run")
def ask_for_run(request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment) -> Response:
    """Show the consumer with the form that starts a run."""
    return _page(request, pages, backend, consumer_at(backend.ledger.reader, flow, deployment), form="run-now")


@router.post("/consumers/{flow}/{deployment}/run")
async def run_now(
    request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment, form: TheForm
) -> Response:
    """Start a run that consumes nothing."""
    record = await run_in_threadpool(consumer_at, backend.ledger.reader, flow, deployment)
    try:
        wanted = RunWanted(partition_key=form.text("partition_key") or None)
        run = await start_run(backend.prefect, record.consumer.deployment_id, wanted)
    except AssetflowError as error:
        refused = form.refused(**{_field(error, "partition_key"): in_words(error)})
        return await run_in_threadpool(_page, request, pages, backend, record, status=422, run_form=refused)
    return RedirectResponse(contents.place(record, started=run["id"]), 303)


@router.get("/consumers/{flow}/{deployment}/remove")
def ask_to_remove(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    flow: Flow,
    deployment: Deployment,
    key: Key = "",
    event: UUID | None = None,
) -> Response:
    """Show the consumer with the form that removes one event, or all, from its queue."""
    record = consumer_at(backend.ledger.reader, flow, deployment)
    return _page(request, pages, backend, record, key=key, remove=event, form="remove")


@router.post("/consumers/{flow}/{deployment}/remove")
def remove_queued(
    request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment, form: TheForm
) -> Response:
    """Remove one queued event, or all of them, for a reason that the receipts keep. Contract 3.7."""
    record = consumer_at(backend.ledger.reader, flow, deployment)
    key, why = form.text("key"), form.text("why").strip()
    event = UUID(form.text("event")) if form.text("event") else None
    which = Selection(record, event_id=event)
    try:
        count = queue.remove_queued(backend, which, target_key=key or None, by="the Assets view", why=why)
    except (InvalidCall, UnknownEvent) as error:
        refused = form.refused(why=in_words(error))
        return _page(request, pages, backend, record, key=key, remove=event, status=422, remove_form=refused)
    return RedirectResponse(contents.place(record, key=key, removed=count), 303)


def _page(
    request: Request,
    pages: Pages,
    backend: Backend,
    record: ConsumerRecord,
    *,
    status: int = 200,
    key: str = "",
    before: int | None = None,
    remove: UUID | None = None,
    form: str = "",
    notice: Notice | None = None,
    at: str = "",
    run_form: Form | None = None,
    remove_form: Form | None = None,
) -> Response:
    key = key if record.consumer.schedule.is_partitioned else ""
    nothing: Notice = {"started": None, "asked": "", "removed": None, "refused": ""}
    return pages.show(
        request,
        "consumer.html",
        fragment="live_part",
        status=status,
        record=record,
        consumer=record.consumer,
        key=key,
        place=contents.place(record),
        here=contents.place(record, key=key, before=before, **{**(notice or {}), "refused": None}),
        verb=contents.verb(record.consumer),
        note=backend.ledger.reader.notes().get(record.consumer.name),
        remove=remove,
        open=form,
        run_form=run_form or Form(),
        remove_form=remove_form or Form(),
        **contents.explained(backend, record, key),
        **contents.earlier(backend.ledger.reader, record, key, at),
        **contents.decided(backend.ledger.reader, record, key, before),
        **(nothing | (notice or {})),
    )


def _field(error: AssetflowError, name: str) -> str:
    return name if error.where == name else "form"
