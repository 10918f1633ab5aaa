"""Consumers: why each runs or does not, its queue, and its switch."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.concurrency import run_in_threadpool

from assetflow.api.backend import Backend, TheBackend, TheReader
from assetflow.api.paging import After, Limit, Moment, Text, following, page
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.own import (
    ConsumersPage,
    ConsumerTold,
    EventsPage,
    PartitionTold,
    PendingOut,
    RemovedOut,
    SwitchedOut,
)
from assetflow.core.assets import Asset
from assetflow.core.codec.events import event_to_json
from assetflow.core.lineage import loops_through
from assetflow.core.redaction import redacted
from assetflow.errors import InvalidCall, UnknownConsumer
from assetflow.ledger.explanations import consumer_explanation, partition_explanation
from assetflow.ledger.lookup import find_consumer
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import ConsumerRecord
from assetflow.prefect_io.automations import Automations

router = APIRouter(tags=["consumers"], route_class=EtagRoute)

Flow = Annotated[str, Path(max_length=500, description="The flow of `flow/deployment`.", examples=["report"])]
Deployment = Annotated[str, Path(max_length=500, description="The deployment's name.", examples=["nightly"])]
Key = Annotated[str | None, Query(max_length=250, description="The pending partition of a partitioned consumer.")]


@router.get("/consumers", response_model=ConsumersPage, responses=answers())
def list_consumers(
    reader: TheReader,
    search: Annotated[Text, Query(description="A part of the name.")] = "",
    paused: bool | None = None,
    after: After = 0,
    limit: Limit = 100,
) -> Json:
    """Consumers by id: what each runs on, how many of its assets were updated, its queue, its latest decision."""
    records = reader.consumers_page(after=after, limit=limit, search=search, paused=paused)
    items = [each.as_json() for each in reader.overviews(records)]
    return Json(page(items, following(items, limit, "id")))


@router.get("/consumers/{flow}/{deployment}", response_model=ConsumerTold, responses=answers(404))
def explain_consumer(flow: Flow, deployment: Deployment, backend: TheBackend) -> Json:
    """Why a consumer runs, or why it does not: its condition with the facts beside each asset."""
    reader = backend.ledger.reader
    record = named_consumer(reader, flow, deployment)
    loops = loops_through(reader.edges_of, record.consumer.name)
    return Json(consumer_explanation(reader, record, backend.now(), loops=loops).as_json())


@router.get("/consumers/{flow}/{deployment}/queue", response_model=EventsPage, responses=answers(404))
def list_queue(flow: Flow, deployment: Deployment, reader: TheReader, key: Key = None, limit: Limit = 100) -> Json:
    """What is queued for a consumer, or for one of its pending partitions; oldest first."""
    record = named_consumer(reader, flow, deployment)
    found = reader.queue(record.consumer.id, key or None, limit=limit)
    return Json(page([event_to_json(redacted(event)) for event in found]))


@router.delete("/consumers/{flow}/{deployment}/queue", response_model=RemovedOut, responses=answers(404))
def remove_queued(
    flow: Flow,
    deployment: Deployment,
    backend: TheBackend,
    why: Annotated[Text, Query(min_length=1, description="The reason, which the receipts keep.")],
    uri: Annotated[Text | None, Query(description="Only events of this asset.")] = None,
    before: Annotated[Moment | None, Query(description="Only events that were recorded before this.")] = None,
    key: Key = None,
    by: Annotated[Text, Query(description="Who removes them.")] = "api",
) -> Json:
    """Remove queued events; pending partitions only by naming consumer and key (3.7)."""
    record = named_consumer(backend.ledger.reader, flow, deployment)
    check_key_is_named(record, key)
    removed = backend.ledger.writer.remove_queued(
        record.consumer.id,
        uri=None if uri is None else Asset(uri).uri,
        before=before,
        target_key=key,
        by=by,
        why=why,
        now=backend.now(),
    )
    return Json({"removed": removed})


@router.get("/consumers/{flow}/{deployment}/partitions", response_model=PendingOut, responses=answers(404))
def list_pending(
    flow: Flow,
    deployment: Deployment,
    reader: TheReader,
    after: Annotated[str, Query(max_length=250, description="The `next` of the page before.")] = "",
    limit: Limit = 100,
) -> Json:
    """The keys of a partitioned consumer for which something is queued."""
    number = named_consumer(reader, flow, deployment).consumer.id
    keys = reader.pending_keys(number, after=after, limit=limit)
    return Json({"items": keys, "next": keys[-1] if len(keys) == limit else None})


@router.get("/consumers/{flow}/{deployment}/partitions/{key}", response_model=PartitionTold, responses=answers(404))
def explain_partition(
    flow: Flow, deployment: Deployment, key: Annotated[str, Path(min_length=1, max_length=250)], reader: TheReader
) -> Json:
    """What a target key has, and what it waits for."""
    record = named_consumer(reader, flow, deployment)
    if not record.consumer.schedule.is_partitioned:
        raise InvalidCall(f"{record.consumer.name} is not partitioned", where="path.key", fix="Ask for the consumer")
    return Json(partition_explanation(reader, record, key).as_json())


@router.post("/consumers/{flow}/{deployment}/pause", response_model=SwitchedOut, responses=answers(404, 409, 415))
async def pause(flow: Flow, deployment: Deployment, backend: TheBackend) -> Json:
    """Pause a schedule, as the switch of its automation in Prefect does."""
    return await _switched(backend, flow, deployment, paused=True)


@router.post("/consumers/{flow}/{deployment}/resume", response_model=SwitchedOut, responses=answers(404, 409, 415))
async def resume(flow: Flow, deployment: Deployment, backend: TheBackend) -> Json:
    """Resume a paused schedule."""
    return await _switched(backend, flow, deployment, paused=False)


async def _switched(backend: Backend, flow: str, deployment: str, *, paused: bool) -> Json:
    record = await run_in_threadpool(named_consumer, backend.ledger.reader, flow, deployment)
    await switch(backend, record, paused=paused)
    return Json({"consumer": record.consumer.name, "paused": paused})


async def switch(backend: Backend, record: ConsumerRecord, *, paused: bool) -> None:
    """Switch the automation that shows a consumer's schedule in Prefect; the evaluator hears of it from there.

    Raises:
        UnknownConsumer: there is no automation.
        PrefectUnreachable, PrefectRefused: it is as it was.
    """
    async with backend.prefect() as api:
        automations = Automations(api)
        automation = await automations.of_deployment(record.consumer.deployment_id)
        if automation is None:
            raise UnknownConsumer(
                f"no automation shows the schedule of {record.consumer.name}", fix="`assetflow sync` makes it"
            )
        await automations.switch(automation.id, enabled=not paused)


def check_key_is_named(record: ConsumerRecord, key: str | None) -> None:
    """Pending partitions are removed only by naming the key (3.7).

    Raises:
        InvalidCall: a key is missing, or given where there are none.
    """
    if record.consumer.schedule.is_partitioned and not key:
        raise InvalidCall(f"{record.consumer.name} is partitioned", where="query.key", rule="3.7", fix="Name the key")
    if key is not None and not record.consumer.schedule.is_partitioned:
        raise InvalidCall(
            f"{record.consumer.name} is not partitioned", where="query.key", rule="3.7", fix="Leave it out"
        )


def named_consumer(reader: Reader, flow: str, deployment: str) -> ConsumerRecord:
    """The consumer of an address.

    Raises:
        UnknownConsumer: there is none; the error names what comes close.
    """
    found = reader.consumer(f"{flow}/{deployment}")
    # Only to say which one may be meant.
    return found or find_consumer(reader, f"{flow}/{deployment}")
