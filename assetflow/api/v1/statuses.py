"""Whether assets are up to date, the versions of an asset, and what Eager and Lazy consumers would run."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Moment, Page, PathAsset, Text, TheBackend, ThePage, TheReader
from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.explain.status import AssetExplanation, Status
from assetflow.errors import places
from assetflow.ledger.read.explanations import asset_explanation
from assetflow.ledger.read.freshness import AssetVersion
from assetflow.operations.lookup import find_uri
from assetflow.operations.what_if import planned

router = APIRouter(tags=["freshness"], route_class=EtagRoute)

PartitionKey = Annotated[Text | None, Query(min_length=1, max_length=250, description="Of this partition alone.")]
TargetKey = Annotated[Text | None, Query(min_length=1, max_length=250, description="Of this target alone.")]


@router.get("/statuses", responses=answers())
def list_statuses(backend: TheBackend, page: ThePage) -> Page[Status]:
    """List the status of all assets that Eager and Lazy consumers need, by URI (8.9)."""
    return page.within(backend.ledger.reader.freshness.statuses(None, backend.now()))


@router.get("/assets/{asset:path}/status", responses=answers(404))
def get_status(asset: PathAsset, backend: TheBackend, partition_key: PartitionKey = None) -> Status:
    """Return whether an asset, or one of its partitions, is up to date, and if not, what has changed (8.9)."""
    reader = backend.ledger.reader
    return reader.freshness.status(find_uri(reader, asset), partition_key, backend.now())


@router.get("/assets/{asset:path}/explanation", responses=answers(404))
def explain_asset(asset: PathAsset, backend: TheBackend, partition_key: PartitionKey = None) -> AssetExplanation:
    """Return the status, the versions that were read beside those of now, and where the data time comes from (8.12)."""
    reader = backend.ledger.reader
    return asset_explanation(reader, find_uri(reader, asset), partition_key, backend.now())


@router.get("/assets/{asset:path}/versions", responses=answers(404))
def list_versions(
    asset: PathAsset,
    reader: TheReader,
    page: ThePage,
    partition_key: PartitionKey = None,
) -> Page[AssetVersion]:
    """List the versions of an asset that Eager or Lazy consumers need, newest first, with their runs (8.2)."""
    found = reader.freshness.versions(find_uri(reader, asset), partition_key, before=page.number, limit=page.limit)
    return page.after(found, lambda each: each.sequence)


@router.get("/plan", responses=answers(404))
def list_plan(
    backend: TheBackend,
    page: ThePage,
    consumer: Annotated[Text | None, Query(description="Only of this one: `flow/deployment`, or an id.")] = None,
    target_key: TargetKey = None,
    at: Annotated[
        Moment | None, Query(description="As of this later time, if nothing happens until then; now.")
    ] = None,
) -> Page[PlannedConsumer]:
    """Return what each Eager or Lazy consumer would run now, what holds it back, and its next look (8.16)."""
    reader = backend.ledger.reader
    with places(consumer="query.consumer", key="query.target_key", at="query.at"):
        return page.within(planned(reader, backend.now(), consumer=consumer, key=target_key, at=at))
