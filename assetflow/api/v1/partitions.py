"""List the partitions of an asset: the keys that were updated, and when."""

from __future__ import annotations

from fastapi import APIRouter

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Page, PathAsset, ThePage, TheReader
from assetflow.ledger.read.partitions import PartitionRecord
from assetflow.operations.lookup import find_uri

router = APIRouter(tags=["assets"], route_class=EtagRoute)


@router.get("/assets/{asset:path}/partitions", responses=answers(404))
def list_partitions(
    asset: PathAsset,
    reader: TheReader,
    page: ThePage,
) -> Page[PartitionRecord]:
    """List the partitions of an asset by key: how often each was updated, and when last."""
    found = reader.partitions.page(find_uri(reader, asset), after=page.text or "", limit=page.limit)
    return page.after(found, lambda each: each.key)
