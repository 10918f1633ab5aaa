"""List and explain consumers, read and empty their queues, pause and resume them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.concurrency import run_in_threadpool

from assetflow.api.backend import Backend, TheBackend, TheReader
from assetflow.api.paging import After, Limit, Moment, Text, following, page
from assetflow.api.params import Deployment, Flow, Preview
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.own import (
    ConsumersPage,
    ConsumerTold,
    EventsPage,
    PartitionTold,
    PendingOut,
    PreviewOut,
    RemovedOut,
    SwitchedOut,
)
from assetflow.core.assets import Asset
from assetflow.core.codec.events import event_to_json
from assetflow.core.lineage import loops_through
from assetflow.core.redaction import redacted
from assetflow.errors import InvalidCall, places
from assetflow.ledger.read.explanations import consumer_explanation, partition_explanation
from assetflow.ledger.read.past_explanations import past_explanation
from assetflow.ledger.records import ConsumerFilter
from assetflow.operations import queue
from assetflow.operations.consumers import consumer_at, list_by_id, switch
from assetflow.operations.lookup import Selection
from assetflow.operations.what_if import if_resumed

router = APIRouter(tags=["consumers"], route_class=EtagRoute)

Key = Annotated[str | None, Query(max_length=250, description="The pending partition of a partitioned consumer.")]


@router.get("/consumers", response_model=ConsumersPage, responses=answers())
def list_consumers(
    reader: TheReader,
    search: Annotated[Text, Query(description="A part of the name.")] = "",
    paused: Annotated[bool | None, Query(description="True: only those whose automation is switched off.")] = None,
    held: Annotated[bool | None, Query(description="True: only those whose deployment is paused.")] = None,
    active: Annotated[bool | None, Query(description="True: only those neither paused nor held.")] = None,
    after: After = 0,
    limit: Limit = 100,
) -> Json:
    """List consumers by id: what each runs on, how many of its assets are updated, its queue, its latest decision."""
    wanted = ConsumerFilter(search, paused, held, active)
    items = [each.as_json() for each in list_by_id(reader, wanted, after=after, limit=limit)]
    return Json(page(items, following(items, limit, "id")))


@router.get("/consumers/{flow}/{deployment}", response_model=ConsumerTold, responses=answers(404))
def explain_consumer(
    flow: Flow,
    deployment: Deployment,
    backend: TheBackend,
    at: Annotated[Moment | None, Query(description="Explain why it ran, or did not, at this time.")] = None,
) -> Json:
    """Explain why a consumer runs or does not run: its condition, with the facts about each asset."""
    reader = backend.ledger.reader
    record = consumer_at(reader, flow, deployment)
    if at is not None:
        return Json(past_explanation(reader, record, at).as_json())
    loops = loops_through(reader.lineage.edges_of, record.consumer.name)
    return Json(consumer_explanation(reader, record, backend.now(), loops=loops).as_json())


@router.get("/consumers/{flow}/{deployment}/queue", response_model=EventsPage, responses=answers(404))
def list_queue(flow: Flow, deployment: Deployment, reader: TheReader, key: Key = None, limit: Limit = 100) -> Json:
    """List the queued events of a consumer, or of one of its pending partitions, oldest first."""
    record = consumer_at(reader, flow, deployment)
    found = reader.queues.events(record.consumer.id, key or None, limit=limit)
    return Json(page([event_to_json(redacted(event)) for event in found]))


@router.delete("/consumers/{flow}/{deployment}/queue", response_model=RemovedOut, responses=answers(404))
def remove_queued(
    flow: Flow,
    deployment: Deployment,
    backend: TheBackend,
    why: Annotated[Text, Query(min_length=1, description="The reason, which the receipts show.")],
    uri: Annotated[Text | None, Query(description="Only events of this asset.")] = None,
    before: Annotated[Moment | None, Query(description="Only events that were recorded before this.")] = None,
    key: Key = None,
    by: Annotated[Text, Query(description="Who removes them.")] = "api",
) -> Json:
    """Remove queued events. For a partitioned consumer, name the key of the pending partition (3.7)."""
    record = consumer_at(backend.ledger.reader, flow, deployment)
    which = Selection(record, None if uri is None else Asset(uri).uri)
    with places(key="query.key", why="query.why"):
        removed = queue.remove_queued(backend, which, target_key=key, before=before, by=by, why=why)
    return Json({"removed": removed})


@router.get("/consumers/{flow}/{deployment}/partitions", response_model=PendingOut, responses=answers(404))
def list_pending(
    flow: Flow,
    deployment: Deployment,
    reader: TheReader,
    after: Annotated[str, Query(max_length=250, description="The `next` of the previous page.")] = "",
    limit: Limit = 100,
) -> Json:
    """List the keys of a partitioned consumer that have queued events."""
    number = consumer_at(reader, flow, deployment).consumer.id
    keys = reader.queues.pending_keys(number, after=after, limit=limit)
    return Json({"items": keys, "next": keys[-1] if len(keys) == limit else None})


@router.get("/consumers/{flow}/{deployment}/partitions/{key}", response_model=PartitionTold, responses=answers(404))
def explain_partition(
    flow: Flow, deployment: Deployment, key: Annotated[str, Path(min_length=1, max_length=250)], reader: TheReader
) -> Json:
    """Explain a pending partition: the keys that it has received, and those that it waits for."""
    record = consumer_at(reader, flow, deployment)
    if not record.consumer.schedule.is_partitioned:
        raise InvalidCall(f"{record.consumer.name} is not partitioned", where="path.key", fix="Ask for the consumer")
    return Json(partition_explanation(reader, record, key).as_json())


@router.post("/consumers/{flow}/{deployment}/pause", response_model=SwitchedOut, responses=answers(404, 409, 415))
async def pause_consumer(flow: Flow, deployment: Deployment, backend: TheBackend) -> Json:
    """Pause a consumer, as the switch of its automation in Prefect does."""
    return await _switched(backend, flow, deployment, paused=True)


@router.post(
    "/consumers/{flow}/{deployment}/resume",
    response_model=SwitchedOut | PreviewOut,
    responses=answers(404, 409, 415),
)
async def resume_consumer(flow: Flow, deployment: Deployment, backend: TheBackend, preview: Preview = False) -> Json:
    """Resume a paused consumer. With `preview=true`, only say what that would lead to."""
    if preview:
        record = await run_in_threadpool(consumer_at, backend.ledger.reader, flow, deployment)
        return Json((await run_in_threadpool(if_resumed, backend.ledger.reader, record, backend.now())).as_json())
    return await _switched(backend, flow, deployment, paused=False)


async def _switched(backend: Backend, flow: str, deployment: str, *, paused: bool) -> Json:
    record = await run_in_threadpool(consumer_at, backend.ledger.reader, flow, deployment)
    await switch(backend.prefect, record, paused=paused)
    return Json({"consumer": record.consumer.name, "paused": paused})
