"""List the partitions of an asset: the keys that were updated, and when."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.backend import TheReader
from assetflow.api.paging import Limit, following, page
from assetflow.api.params import NamedAsset
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.own import PartitionsPage
from assetflow.core.words import iso
from assetflow.operations.lookup import find_uri

router = APIRouter(tags=["assets"], route_class=EtagRoute)


@router.get("/partitions", response_model=PartitionsPage, responses=answers(404))
def list_partitions(
    reader: TheReader,
    asset: NamedAsset,
    after: Annotated[str, Query(max_length=250, description="The `next` of the previous page.")] = "",
    limit: Limit = 100,
) -> Json:
    """List the partitions of an asset by key: how often each was updated, and when last."""
    found = reader.partitions.page(find_uri(reader, asset), after=after, limit=limit)
    items: list[dict[str, object]] = [
        {
            "key": each.key,
            "events": each.events,
            "last_event": each.last_event,
            "last_update": iso(each.last_time),
        }
        for each in found
    ]
    return Json(page(items, following(items, limit, "key")))
