"""Show how fresh the assets with a policy are."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.backend import TheBackend
from assetflow.api.paging import LARGEST, Limit, Text, following, page
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.freshness import FreshnessChangesPage, FreshnessPage

router = APIRouter(tags=["assets"], route_class=EtagRoute)


@router.get("/freshness", response_model=FreshnessPage, responses=answers())
def list_freshness(backend: TheBackend) -> Json:
    """List the assets that have a freshness policy, with state, data time and lag (8.13)."""
    now = backend.now()
    found = backend.ledger.reader.policies.all()
    return Json(page([each.as_json(now) for each in found], None))


@router.get("/freshness/changes", response_model=FreshnessChangesPage, responses=answers())
def list_freshness_changes(
    backend: TheBackend,
    uri: Annotated[Text | None, Query(description="Of this asset.")] = None,
    before: Annotated[int | None, Query(ge=0, le=LARGEST, description="The `next` of the previous page.")] = None,
    limit: Limit = 100,
) -> Json:
    """List the changes of states, newest first: each is one event in Prefect (8.13)."""
    found = backend.ledger.reader.policies.changes(uri=uri, before=before, limit=limit)
    items = [each.as_json() for each in found]
    return Json(page(items, following(items, limit, "number")))
