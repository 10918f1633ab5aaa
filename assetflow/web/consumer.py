"""One consumer: why it runs or does not, its queue, its decisions, and what an operator can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.backend import Backend, TheBackend
from assetflow.api.paging import LARGEST
from assetflow.api.schemas.airflow import MaterializeIn
from assetflow.api.v1.consumers import Deployment, Flow, named_consumer, switch
from assetflow.api.v2.materialize import start_run
from assetflow.core.lineage import loops_through
from assetflow.core.partitions import check_key
from assetflow.core.redaction import redacted
from assetflow.errors import AssetflowError
from assetflow.ledger.explanations import consumer_explanation, partition_explanation
from assetflow.ledger.records import ConsumerRecord
from assetflow.web.forms import Form, TheForm
from assetflow.web.pages import Pages, ThePages, url
from assetflow.web.refresh import look_again

router = APIRouter()

QUEUED = 50
DECISIONS = 15
PARTITIONS = 20
Key = Annotated[str, Query(max_length=250)]
Place = Annotated[int | None, Query(ge=0, le=LARGEST)]


@router.get("/consumers/{flow}/{deployment}")
def show_consumer(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    flow: Flow,
    deployment: Deployment,
    key: Key = "",
    before: Place = None,
    remove: UUID | None = None,
    started: UUID | None = None,
    asked: Annotated[str, Query(max_length=10)] = "",
    removed: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
) -> Response:
    """A consumer; with a key, one of its partitions; with `remove`, the question whether to remove that event."""
    record = named_consumer(backend.ledger.reader, flow, deployment)
    # Until the evaluator has heard of it from Prefect, the page looks again.
    waits = asked in ("pause", "resume") and (asked == "pause") != record.consumer.paused
    told = {"started": started, "asked": asked if waits else "", "removed": removed}
    return _page(request, pages, backend, record, key=key, before=before, remove=remove, told=told)


@router.post("/consumers/{flow}/{deployment}/switch")
async def switch_consumer(backend: TheBackend, flow: Flow, deployment: Deployment, form: TheForm) -> Response:
    """Pause or resume, as the switch of the automation in Prefect does."""
    record = await run_in_threadpool(named_consumer, backend.ledger.reader, flow, deployment)
    paused = form.text("paused") == "yes"
    await switch(backend, record, paused=paused)
    return RedirectResponse(_place(record, asked="pause" if paused else "resume"), 303)


@router.post("/consumers/{flow}/{deployment}/run")
async def run_now(
    request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment, form: TheForm
) -> Response:
    """Start a run that consumes nothing."""
    record = await run_in_threadpool(named_consumer, backend.ledger.reader, flow, deployment)
    try:
        key = form.text("partition_key")
        wanted = MaterializeIn(partition_key=check_key(key) if key else None)
        run = await start_run(backend, record.consumer.deployment_id, wanted)
    except AssetflowError as error:
        refused = form.refused(**{_field(error, "partition_key"): _told(error)})
        return await run_in_threadpool(_page, request, pages, backend, record, status=422, run_form=refused)
    return RedirectResponse(_place(record, started=run["id"]), 303)


@router.post("/consumers/{flow}/{deployment}/remove")
def remove_queued(
    request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment, form: TheForm
) -> Response:
    """Remove what is queued, or one event of it, for a reason that the receipts keep (3.7)."""
    record = named_consumer(backend.ledger.reader, flow, deployment)
    key, why = form.text("key"), form.text("why").strip()
    event = UUID(form.text("event")) if form.text("event") else None
    if not why:
        refused = form.refused(why="Say why: the receipts keep it.")
        return _page(request, pages, backend, record, key=key, remove=event, status=422, remove_form=refused)
    count = backend.ledger.writer.remove_queued(
        record.consumer.id,
        event_id=event,
        target_key=key or None,
        by="the Assets view",
        why=why,
        now=backend.now(),
    )
    return RedirectResponse(_place(record, key=key, removed=count), 303)


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
    told: Mapping[str, object] | None = None,
    run_form: Form | None = None,
    remove_form: Form | None = None,
) -> Response:
    reader, consumer = backend.ledger.reader, record.consumer
    loops = loops_through(reader.edges_of, consumer.name)
    explained = consumer_explanation(reader, record, backend.now(), loops=loops, partitions=PARTITIONS)
    partitioned = consumer.schedule.is_partitioned
    part = partition_explanation(reader, record, key) if partitioned and key else None
    shown = not partitioned or part is not None
    queue = reader.queue(consumer.id, key or None, limit=QUEUED + 1) if shown else []
    decisions = reader.decisions(consumer=consumer.id, before=before, limit=DECISIONS + 1)
    return pages.show(
        request,
        "consumer.html",
        fragment="live_part",
        status=status,
        record=record,
        consumer=consumer,
        explained=explained,
        part=part,
        key=key if partitioned else "",
        rows=explained.condition if part is None else part.condition,
        queue=[redacted(event) for event in queue[:QUEUED]],
        queued=explained.queued if part is None else part.queued,
        decisions=decisions[:DECISIONS],
        again=look_again(decisions),
        consumed=reader.event_catalog.consumed_of([each.number for each in decisions[:DECISIONS]]),
        older=_place(record, key=key, before=decisions[DECISIONS - 1].number) if len(decisions) > DECISIONS else "",
        newest=_place(record, key=key) if before is not None else "",
        here=_place(record, key=key, before=before, asked=(told or {}).get("asked")),
        place=_place(record),
        remove=remove,
        run_form=run_form or Form(),
        remove_form=remove_form or Form(),
        **({"started": None, "asked": "", "removed": None} | dict(told or {})),
    )


def _place(record: ConsumerRecord, **query: object) -> str:
    return url("/consumers", *record.consumer.name.split("/", 1), **query)


def _field(error: AssetflowError, name: str) -> str:
    return name if error.where == name else "form"


def _told(error: AssetflowError) -> str:
    return f"{error.message[:1].upper()}{error.message[1:].rstrip('.')}. {error.fix}".strip()
