"""Start runs by hand: of a consumer, or of the flow that makes an asset. Contract 4.5."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from assetflow.api.own_shapes import AssetRunIn, ConsumerRun, MaterializingRun, RunIn
from assetflow.api.problems import answers
from assetflow.api.requests import AsksPreview, Backend, Deployment, EtagRoute, Flow, PathAsset, TheBackend
from assetflow.errors import places
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import consumer_at, find_uri
from assetflow.operations.runs_by_hand import RunWanted, maker_of, start_run
from assetflow.operations.what_if import Preview, if_run

router = APIRouter(route_class=EtagRoute)

_PLACES = {"parameters": "body.parameters", "partition_key": "body.partition_key"}
_ANSWERS = answers(404, 409, 413, 415)


@router.post("/consumers/{flow}/{deployment}/run", responses=_ANSWERS, tags=["consumers"])
async def run_consumer(
    flow: Flow, deployment: Deployment, backend: TheBackend, body: RunIn | None = None, preview: AsksPreview = False
) -> ConsumerRun | Preview:
    """Start a run of a consumer. It consumes nothing: what is queued stays queued.

    With `preview=true` nothing starts: the answer says what would follow if the run completes and updates every outlet
    that the flow declares.
    """
    record = await run_in_threadpool(consumer_at, backend.ledger.reader, flow, deployment)
    name, given = record.consumer.name, body or RunIn()
    if preview:
        return await _previewed(backend, name, given)
    return ConsumerRun(**await _started(backend, record.consumer.deployment_id, given), consumer=name)


@router.post("/assets/{asset:path}/materialize", responses=_ANSWERS, tags=["assets"])
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
    uri = find_uri(reader, asset)
    found = reader.assets.get(uri=uri)
    makers = {} if found is None else reader.assets.users_of([found.record])[uri].producers
    return (uri, *maker_of(uri, makers, chosen))
