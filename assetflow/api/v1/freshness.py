"""Show how fresh the assets with a policy are."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Page, Text, TheBackend, ThePage
from assetflow.core.freshness.asset_freshness import FreshnessChange, FreshnessNow
from assetflow.operations.lookup import find_uri

router = APIRouter(tags=["assets"], route_class=EtagRoute)


@router.get("/freshness", responses=answers())
def list_freshness(backend: TheBackend, page: ThePage) -> Page[FreshnessNow]:
    """List the assets that have a freshness policy, with state, data time and lag (8.13)."""
    now = backend.now()
    return page.within([each.shown(now) for each in backend.ledger.reader.policies.all()])


@router.get("/freshness/changes", responses=answers(404))
def list_freshness_changes(
    backend: TheBackend,
    page: ThePage,
    asset: Annotated[Text | None, Query(description="Of this asset: its URI, or its name.")] = None,
) -> Page[FreshnessChange]:
    """List the changes of states, newest first: each is one event in Prefect (8.13)."""
    reader = backend.ledger.reader
    uri = None if asset is None else find_uri(reader, asset)
    found = reader.policies.changes(uri=uri, before=page.number, limit=page.limit)
    return page.after([each.shown() for each in found], lambda each: each.number)
