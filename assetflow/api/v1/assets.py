"""List assets, find one by its URI or name, and show the graph around it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.backend import TheReader
from assetflow.api.paging import Limit, Offset, Text, page
from assetflow.api.params import NamedAsset
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.own import AssetOut, AssetsPage, GraphOut, NameOut
from assetflow.core.lineage import DATA, SCHEDULING, EdgeKind, Node, neighbourhood
from assetflow.errors import InvalidCall, UnknownAsset
from assetflow.ledger.read.assets import AssetFilter
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import find_uri

router = APIRouter(tags=["assets"], route_class=EtagRoute)

MOST_NODES = 500


@router.get("/assets", response_model=AssetsPage, responses=answers())
def list_assets(
    reader: TheReader,
    search: Annotated[Text, Query(description="A part of the URI, of a name or of the group.")] = "",
    group: Annotated[Text | None, Query(description="Of this group.")] = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> Json:
    """List assets by URI. For the next page, give `next` as `offset`."""
    query = AssetFilter(search=search, group=group)
    found, total = reader.assets.page(query, [("uri", False)], limit=limit, offset=offset)
    users = reader.assets.users_of([each.record for each in found])
    items = [each.as_json(users[each.record.uri]) for each in found]
    more = offset + len(items) if offset + len(items) < total and items else None
    return Json({**page(items, more), "total": total})


@router.get("/asset", response_model=AssetOut, responses=answers(404))
def get_asset(reader: TheReader, asset: NamedAsset) -> Json:
    """Return one asset, by its URI or name. For an unknown one, the error names similar assets."""
    uri = find_uri(reader, asset)
    found = reader.assets.get(uri=uri)
    if found is None:
        raise UnknownAsset(f"no asset is called {asset!r}", where="query.asset")
    return Json(found.as_json(reader.assets.users_of([found.record])[uri]))


@router.get("/lineage", response_model=GraphOut, responses=answers(404))
def get_lineage(
    reader: TheReader,
    asset: Annotated[Text, Query(description="The asset's URI, or its name.", examples=["s3://shop/orders"])] = "",
    node: Annotated[Text, Query(description="Any node, by its id in these answers.")] = "",
    depth: Annotated[int, Query(ge=0, le=100, description="The largest number of edges from the start.")] = 2,
    scheduling: Annotated[bool, Query(description="Include edges that start flows.")] = True,
    data: Annotated[bool, Query(description="Include edges of data: what flows produce and read.")] = True,
    limit: Annotated[int, Query(ge=1, le=MOST_NODES, description="The largest number of nodes, nearest first.")] = 200,
) -> Json:
    """Return the graph around an asset: the flows that it starts, that make it and that read it, and their assets.

    Name the `asset`, or a `node` of an earlier answer to continue from there.
    """
    kinds: set[EdgeKind] = {*(SCHEDULING if scheduling else ()), *(DATA if data else ())}
    start = _start(reader, asset, node)
    return Json(neighbourhood(reader.lineage.edges_of, start, depth, kinds=kinds, most=limit).as_json())


def _start(reader: Reader, asset: str, node: str) -> Node:
    if bool(asset) == bool(node):
        raise InvalidCall("the graph needs either an asset or a node", where="query.asset", fix="Give one of them")
    found = Node.from_json(node) if node else Node("asset", asset)
    if found is None:
        raise InvalidCall(f"{node!r} is not a node", where="query.node", fix="Give an id from an answer")
    return Node("asset", find_uri(reader, found.value)) if found.kind == "asset" else found


@router.get("/names/{name:path}", response_model=NameOut, responses=answers(404))
def get_owner(name: Text, reader: TheReader) -> Json:
    """Return the URI that a name belongs to."""
    uri = reader.assets.owner_of(name)
    if uri is None:
        raise UnknownAsset(
            f"no asset is named {name!r}", where="path.name", fix="GET /api/v1/asset names similar assets"
        )
    return Json({"name": name, "uri": uri})
