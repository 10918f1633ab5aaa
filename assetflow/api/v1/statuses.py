"""Whether assets are up to date, the versions of an asset, and what Eager consumers would run."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from assetflow.api.backend import TheBackend, TheReader
from assetflow.api.paging import LARGEST, Limit, Moment, Text, following, page
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.statuses import PlanOut, StatusesOut, StatusOut, VersionsPage
from assetflow.errors import places
from assetflow.operations.lookup import find_uri
from assetflow.operations.planning import planned

router = APIRouter(tags=["freshness"], route_class=EtagRoute)

PathAsset = Annotated[
    Text, Path(min_length=1, description="The asset's URI, percent-encoded, or its name.", examples=["s3://lake/board"])
]
Key = Annotated[str | None, Query(min_length=1, max_length=250, description="Of this partition alone.")]


@router.get("/statuses", response_model=StatusesOut, responses=answers())
def list_statuses(backend: TheBackend) -> Json:
    """List the status of all assets that Eager consumers need, by URI (8.9)."""
    found = backend.ledger.reader.freshness.statuses(None, backend.now())
    return Json({"items": [each.as_json() for each in found]})


@router.get("/assets/{asset:path}/status", response_model=StatusOut, responses=answers(404))
def get_status(asset: PathAsset, backend: TheBackend, key: Key = None) -> Json:
    """Return whether an asset, or one of its partitions, is up to date, and if not, what has changed (8.9)."""
    reader = backend.ledger.reader
    return Json(reader.freshness.status(find_uri(reader, asset), key, backend.now()).as_json())


@router.get("/assets/{asset:path}/versions", response_model=VersionsPage, responses=answers(404))
def list_versions(
    asset: PathAsset,
    reader: TheReader,
    key: Key = None,
    before: Annotated[int | None, Query(ge=0, le=LARGEST, description="The `next` of the previous page.")] = None,
    limit: Limit = 20,
) -> Json:
    """List the versions of an asset that Eager consumers need, newest first, with the run that made each (8.2)."""
    found = reader.freshness.versions(find_uri(reader, asset), key, before=before, limit=limit)
    items = [each.as_json() for each in found]
    return Json(page(items, following(items, limit, "sequence")))


@router.get("/plan", response_model=PlanOut, responses=answers(404))
def get_plan(
    backend: TheBackend,
    consumer: Annotated[Text | None, Query(description="Only of this one: `flow/deployment`, or an id.")] = None,
    key: Key = None,
    at: Annotated[
        Moment | None, Query(description="As of this later time, if nothing happens until then; now.")
    ] = None,
) -> Json:
    """Return what each Eager consumer would run now, what holds it back, and when it is looked at next (8.16)."""
    reader = backend.ledger.reader
    with places(consumer="query.consumer", key="query.key", at="query.at"):
        found = planned(reader, backend.now(), consumer=consumer, key=key, at=at)
    return Json({"items": [each.as_json() for each in found]})
