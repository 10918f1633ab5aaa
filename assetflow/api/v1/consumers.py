"""Consumers and their queues, starting runs by hand, decisions and runs."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from fastapi.concurrency import run_in_threadpool

from assetflow.api.own_shapes import (
    AssetRunIn,
    ConsumerRun,
    GivenUpOut,
    GiveUpIn,
    MaterializingRun,
    RemovedOut,
    ReplayedOut,
    RunIn,
    Switched,
)
from assetflow.api.problems import answers
from assetflow.api.requests import (
    AsksPreview,
    Backend,
    Deployment,
    EtagRoute,
    Flow,
    Json,
    Moment,
    Now,
    Page,
    PathAsset,
    Text,
    TheBackend,
    TheConsumer,
    ThePage,
    TheReader,
)
from assetflow.core.explain import (
    ConsumerExplanation,
    DecisionExplanation,
    PartitionExplanation,
    ShownEvent,
    shown_event,
)
from assetflow.core.graph.lineage import loops_through
from assetflow.core.values.announcements import MissedDeadlineRecord
from assetflow.core.wire.deployments import RefusedDeployment
from assetflow.errors import InvalidCall, places
from assetflow.ledger.read.consumers import ShownConsumer
from assetflow.ledger.read.explanations import (
    consumer_explanation,
    decision_explanation,
    partition_explanation,
    past_explanation,
    run_explanation,
)
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter, ConsumerRecord, DecisionRecord, DecisionStatus
from assetflow.operations import decisions, runs_by_hand
from assetflow.operations.lookup import (
    Selection,
    consumer_at,
    decision_with,
    find_asset,
    find_uri,
    list_by_id,
    number_of,
    switch,
)
from assetflow.operations.needs import ListedRun, Need, list_runs
from assetflow.operations.runs_by_hand import Retried, RunWanted, maker_of, start_run
from assetflow.operations.what_if import Preview, if_resumed, if_run

router = APIRouter(tags=["consumers"], route_class=EtagRoute)

TargetKey = Annotated[
    Text | None, Query(max_length=250, description="The pending partition of a partitioned consumer.")
]


@router.get("/consumers", responses=answers())
def list_consumers(
    backend: TheBackend,
    page: ThePage,
    search: Annotated[Text, Query(description="A part of the name.")] = "",
    paused: Annotated[bool | None, Query(description="True: only those whose automation is switched off.")] = None,
    held: Annotated[bool | None, Query(description="True: only those whose deployment is paused.")] = None,
    active: Annotated[bool | None, Query(description="True: only those neither paused nor held.")] = None,
) -> Page[ShownConsumer]:
    """List consumers by id: what each runs on, how many of its assets are updated, its queue, its latest decision."""
    wanted = ConsumerFilter(search, paused, held, active)
    found = list_by_id(backend.ledger.reader, wanted, backend.now(), after=page.number or 0, limit=page.limit)
    return page.after([each.shown() for each in found], lambda each: each.id)


@router.get("/deployments/refused", responses=answers())
def list_refused_deployments(reader: TheReader, page: ThePage) -> Page[RefusedDeployment]:
    """List the deployments whose declarations cannot be used, by name: those of consumers, and new ones (4.4, 8.1)."""
    return page.within(reader.refused_deployments())


@router.get("/consumers/{flow}/{deployment}", responses=answers(404))
def explain_consumer(
    record: TheConsumer,
    reader: TheReader,
    now: Now,
    at: Annotated[Moment | None, Query(description="Explain why it ran, or did not, at this time.")] = None,
) -> ConsumerExplanation:
    """Explain why a consumer runs or does not run: its condition, with the facts about each asset."""
    if at is not None:
        return past_explanation(reader, record, at)
    loops = loops_through(reader.lineage.edges_of, record.consumer.name)
    return consumer_explanation(reader, record, now, loops=loops)


@router.get("/consumers/{flow}/{deployment}/queue", responses=answers(404))
def list_queue(record: TheConsumer, reader: TheReader, page: ThePage, target_key: TargetKey = None) -> Page[ShownEvent]:
    """List the queued events of a consumer, or of one of its pending partitions, oldest first."""
    found = reader.queues.events(record.consumer.id, target_key or None, after=page.number or 0, limit=page.limit)
    return page.after([shown_event(event) for event in found], lambda each: each.sequence or 0)


@router.delete("/consumers/{flow}/{deployment}/queue", response_model=RemovedOut, responses=answers(404))
def remove_queued(
    record: TheConsumer,
    backend: TheBackend,
    why: Annotated[Text, Query(min_length=1, description="The reason, which the receipts show.")],
    asset: Annotated[Text | None, Query(description="Only events of this asset: its URI, or its name.")] = None,
    before: Annotated[Moment | None, Query(description="Only events that were recorded before this.")] = None,
    target_key: TargetKey = None,
    by: Annotated[Text, Query(description="Who removes them.")] = "api",
) -> Json:
    """Remove queued events. For a partitioned consumer, name the target key of the pending partition (3.7)."""
    with places(asset="query.asset", key="query.target_key", why="query.why"):
        which = Selection(record, None if asset is None else find_uri(backend.ledger.reader, asset))
        removed = decisions.remove_queued(backend, which, target_key=target_key, before=before, by=by, why=why)
    return Json({"removed": removed})


@router.get("/consumers/{flow}/{deployment}/partitions", responses=answers(404))
def list_pending(record: TheConsumer, reader: TheReader, page: ThePage) -> Page[str]:
    """List the target keys of a partitioned consumer that have queued events."""
    keys = reader.queues.pending_keys(record.consumer.id, after=page.text or "", limit=page.limit)
    return page.after(keys, lambda key: key)


@router.get("/consumers/{flow}/{deployment}/partitions/{target_key}", responses=answers(404))
def explain_partition(
    flow: Flow,
    deployment: Deployment,
    target_key: Annotated[Text, Path(min_length=1, max_length=250)],
    reader: TheReader,
) -> PartitionExplanation:
    """Explain a pending partition: the keys that it has received, and those that it waits for."""
    record = consumer_at(reader, flow, deployment)
    if not record.consumer.schedule.is_partitioned:
        raise InvalidCall(
            f"{record.consumer.name} is not partitioned", where="path.target_key", fix="Ask for the consumer"
        )
    return partition_explanation(reader, record, target_key)


@router.post("/consumers/{flow}/{deployment}/pause", responses=answers(404, 409, 415))
async def pause_consumer(record: TheConsumer, backend: TheBackend) -> Switched:
    """Pause a consumer, as the switch of its automation in Prefect does."""
    return await _switched(backend, record, paused=True)


@router.post("/consumers/{flow}/{deployment}/resume", responses=answers(404, 409, 415))
async def resume_consumer(record: TheConsumer, backend: TheBackend, preview: AsksPreview = False) -> Switched | Preview:
    """Resume a paused consumer. With `preview=true`, only say what that would lead to."""
    if preview:
        return await run_in_threadpool(if_resumed, backend.ledger.reader, record, backend.now())
    return await _switched(backend, record, paused=False)


@router.post("/consumers/{flow}/{deployment}/retry", responses=answers(404, 409, 415))
async def retry_consumer(
    record: TheConsumer,
    backend: TheBackend,
    target_key: Annotated[
        str | None, Query(max_length=250, description="Only this target key; without it, all of them.")
    ] = None,
    all_failed: Annotated[
        bool, Query(description="All failed runs of a consumer that updates start, instead of the last one.")
    ] = False,
) -> Retried:
    """Let a consumer try again: an Eager or Lazy one what it tried or waived, another one its last failed run.

    What is out of date is asked for (8.7). A failed run runs again in Prefect, with the updates that it was given.
    """
    with places(key="query.target_key", all_failed="query.all_failed"):
        return await runs_by_hand.retry(backend, record, target_key, all_failed=all_failed)


async def _switched(backend: Backend, record: ConsumerRecord, *, paused: bool) -> Switched:
    await switch(backend.prefect, record, paused=paused)
    return Switched(record.consumer.name, paused)


@router.get("/deadlines/missed", responses=answers(404))
def list_missed_deadlines(
    reader: TheReader,
    page: ThePage,
    consumer: Annotated[Text | None, Query(description="Of this consumer: `flow/deployment`, or an id.")] = None,
) -> Page[MissedDeadlineRecord]:
    """List the deadlines that passed without a decision, newest first (9.8)."""
    found = reader.deadlines.missed(consumer=number_of(reader, consumer), before=page.number, limit=page.limit)
    return page.after(found, lambda each: each.number)


decision_router = APIRouter(tags=["decisions"], route_class=EtagRoute)


@decision_router.get("/decisions", responses=answers(404))
def list_decisions(
    reader: TheReader,
    page: ThePage,
    consumer: Annotated[Text | None, Query(description="Of this consumer: `flow/deployment`, or an id.")] = None,
    status: DecisionStatus | None = None,
) -> Page[DecisionRecord]:
    """List decisions, newest first, with their runs."""
    found = reader.decisions.find(
        consumer=number_of(reader, consumer), status=status, before=page.number, limit=page.limit
    )
    return page.after(found, lambda each: each.number)


@decision_router.get("/decisions/{decision_id}", responses=answers(404))
def explain_decision(decision_id: UUID, reader: TheReader) -> DecisionExplanation:
    """Explain a decision: the events that it consumed, the one that completed the condition, and its run.

    Of more than 1,000 events, the answer has the oldest and the one that completed the condition.
    """
    with places(decision="path.decision_id"):
        record = decision_with(reader, decision_id)
    return decision_explanation(reader, record)


@decision_router.post("/decisions/{decision_id}/replay", response_model=ReplayedOut, responses=answers(404, 415))
def replay_decision(decision_id: UUID, backend: TheBackend) -> Json:
    """Make an undeliverable decision wait for its run again (4.6)."""
    decisions.replay(backend, [decision_id])
    return Json({"id": str(decision_id), "status": "waiting"})


@decision_router.post("/decisions/{decision_id}/give-up", response_model=GivenUpOut, responses=answers(404, 415))
def give_up_decision(decision_id: UUID, wanted: GiveUpIn, backend: TheBackend) -> Json:
    """Give up a decision that waits for its run, so that later decisions of its consumer can go ahead (4.6)."""
    with places(why="body.why"):
        decisions.give_up(backend, decision_id, by=wanted.by, why=wanted.why)
    return Json({"id": str(decision_id), "status": "undeliverable"})


@decision_router.get("/runs/{flow_run_id}", responses=answers(404))
def explain_run(flow_run_id: UUID, reader: TheReader) -> DecisionExplanation:
    """Explain why a flow run was started: return the decision that started it."""
    return run_explanation(reader, flow_run_id)


@decision_router.get("/runs", responses=answers(404))
def list_ended_runs(
    reader: TheReader,
    page: ThePage,
    failed: Annotated[bool, Query(description="Only runs that failed or crashed.")] = False,
    since: Annotated[Moment | None, Query(description="Ended at this time or later.")] = None,
    until: Annotated[Moment | None, Query(description="Ended before this time.")] = None,
    flow: Annotated[Text | None, Query(description="Of this flow and deployment: `flow/deployment`.")] = None,
    target_key: Annotated[Text | None, Query(description="For this target key.")] = None,
) -> Page[ListedRun]:
    """List the runs of consumers and makers that have ended, newest first, whoever started them (4.8)."""
    of = {"failed": failed, "since": since, "until": until, "flow": flow, "target_key": target_key}
    found = list_runs(reader, **of, before=page.number, limit=page.limit)  # type: ignore[arg-type]
    return page.after(found, lambda each: each.number)


@decision_router.get("/needs", responses=answers())
def get_needs(backend: TheBackend) -> list[Need]:
    """List what needs a person: what failed and was not made good, and what does not work (4.9).

    What keeps everything waiting comes first, then that for which most flows wait further down.
    """
    return backend.needs()


start_router = APIRouter(route_class=EtagRoute)

_PLACES = {"parameters": "body.parameters", "partition_key": "body.partition_key"}
_ANSWERS = answers(404, 409, 413, 415)


@start_router.post("/consumers/{flow}/{deployment}/run", responses=_ANSWERS, tags=["consumers"])
async def run_consumer(
    record: TheConsumer, backend: TheBackend, body: RunIn | None = None, preview: AsksPreview = False
) -> ConsumerRun | Preview:
    """Start a run of a consumer. It consumes nothing: what is queued stays queued.

    With `preview=true` nothing starts: the answer says what would follow if the run completes and updates every outlet
    that the flow declares.
    """
    name, given = record.consumer.name, body or RunIn()
    if preview:
        return await _previewed(backend, name, given)
    return ConsumerRun(**await _started(backend, record.consumer.deployment_id, given), consumer=name)


@start_router.post("/assets/{asset:path}/materialize", responses=_ANSWERS, tags=["assets"])
async def materialize_asset(
    asset: PathAsset, backend: TheBackend, body: AssetRunIn | None = None, preview: AsksPreview = False
) -> MaterializingRun | Preview:
    """Run the flow that makes an asset. If several make it, name one as `producer`: without it, the answer is 409.

    With `preview=true` nothing starts: the answer says what would follow if the run completes and updates every outlet
    that the flow declares.
    """
    given = body or AssetRunIn()
    with places(asset="path.asset", producer="body.producer"):
        uri, producer, deployment = await run_in_threadpool(_maker, backend.ledger.reader, asset, given.producer or "")
    if preview:
        return await _previewed(backend, producer, given)
    return MaterializingRun(**await _started(backend, deployment, given), uri=uri, producer=producer)


async def _previewed(backend: Backend, flow: str, given: RunIn) -> Preview:
    with places(**_PLACES):
        return await run_in_threadpool(if_run, backend.ledger.reader, flow, [given.partition_key], backend.now())


async def _started(backend: Backend, deployment: UUID, given: RunIn) -> dict[str, Any]:
    wanted = RunWanted(given.parameters, given.partition_key, given.name)
    with places(**_PLACES):
        run = await start_run(backend.prefect, deployment, wanted)
    return {"flow_run_id": UUID(run["id"]), "flow_run_name": run["name"], "partition_key": given.partition_key}


def _maker(reader: Reader, asset: str, chosen: str) -> tuple[str, str, UUID]:
    """Return the URI of an asset, and the name and the id of the deployment that makes it."""
    found = find_asset(reader, asset)
    return (found.uri, *maker_of(found.uri, found.users.producers, chosen))
