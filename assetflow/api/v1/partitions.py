"""List the partitions of an asset: the keys that were updated, and when."""

from __future__ import annotations

from fastapi import APIRouter

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, PathAsset, ThePage, TheReader
from assetflow.api.schemas.assets import PartitionsPage
from assetflow.core.values.words import iso
from assetflow.ledger.read.partitions import PartitionRecord
from assetflow.operations.lookup import find_uri

router = APIRouter(tags=["assets"], route_class=EtagRoute)


@router.get("/assets/{asset:path}/partitions", response_model=PartitionsPage, responses=answers(404))
def list_partitions(
    asset: PathAsset,
    reader: TheReader,
    page: ThePage,
) -> Json:
    """List the partitions of an asset by key: how often each was updated, and when last."""
    found = reader.partitions.page(find_uri(reader, asset), after=page.text or "", limit=page.limit)
    return Json(page.after(found, _as_json, lambda each: each.key))


def _as_json(each: PartitionRecord) -> dict[str, object]:
    return {
        "partition_key": each.key,
        "events": each.events,
        "last_event": each.last_event,
        "last_update": iso(each.last_time),
    }
