"""Whether assets are up to date, the versions of an asset, and what Eager and Lazy consumers would run."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, Moment, PathAsset, Text, TheBackend, ThePage, TheReader
from assetflow.api.schemas.health import AssetExplanationOut, PlanPage, StatusesPage, StatusOut, VersionsPage
from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.explain.status import Status
from assetflow.errors import places
from assetflow.ledger.read.freshness import AssetVersion
from assetflow.operations.lookup import find_uri
from assetflow.operations.planning import planned

router = APIRouter(tags=["freshness"], route_class=EtagRoute)

PartitionKey = Annotated[Text | None, Query(min_length=1, max_length=250, description="Of this partition alone.")]
TargetKey = Annotated[Text | None, Query(min_length=1, max_length=250, description="Of this target alone.")]


@router.get("/statuses", response_model=StatusesPage, responses=answers())
def list_statuses(backend: TheBackend, page: ThePage) -> Json:
    """List the status of all assets that Eager and Lazy consumers need, by URI (8.9)."""
    found = backend.ledger.reader.freshness.statuses(None, backend.now())
    return Json(page.within(found, Status.as_json))


@router.get("/assets/{asset:path}/status", response_model=StatusOut, responses=answers(404))
def get_status(asset: PathAsset, backend: TheBackend, partition_key: PartitionKey = None) -> Json:
    """Return whether an asset, or one of its partitions, is up to date, and if not, what has changed (8.9)."""
    reader = backend.ledger.reader
    return Json(reader.freshness.status(find_uri(reader, asset), partition_key, backend.now()).as_json())


@router.get("/assets/{asset:path}/explanation", response_model=AssetExplanationOut, responses=answers(404))
def explain_asset(asset: PathAsset, backend: TheBackend, partition_key: PartitionKey = None) -> Json:
    """Return the status, the versions that were read beside those of now, and where the data time comes from (8.12)."""
    reader = backend.ledger.reader
    return Json(reader.freshness.explained(find_uri(reader, asset), partition_key, backend.now()).as_json())


@router.get("/assets/{asset:path}/versions", response_model=VersionsPage, responses=answers(404))
def list_versions(
    asset: PathAsset,
    reader: TheReader,
    page: ThePage,
    partition_key: PartitionKey = None,
) -> Json:
    """List the versions of an asset that Eager or Lazy consumers need, newest first, with their runs (8.2)."""
    found = reader.freshness.versions(find_uri(reader, asset), partition_key, before=page.number, limit=page.limit)
    return Json(page.after(found, AssetVersion.as_json, lambda each: each.sequence))


@router.get("/plan", response_model=PlanPage, responses=answers(404))
def list_plan(
    backend: TheBackend,
    page: ThePage,
    consumer: Annotated[Text | None, Query(description="Only of this one: `flow/deployment`, or an id.")] = None,
    target_key: TargetKey = None,
    at: Annotated[
        Moment | None, Query(description="As of this later time, if nothing happens until then; now.")
    ] = None,
) -> Json:
    """Return what each Eager or Lazy consumer would run now, what holds it back, and its next look (8.16)."""
    reader = backend.ledger.reader
    with places(consumer="query.consumer", key="query.target_key", at="query.at"):
        found = planned(reader, backend.now(), consumer=consumer, key=target_key, at=at)
    return Json(page.within(found, PlannedConsumer.as_json))
