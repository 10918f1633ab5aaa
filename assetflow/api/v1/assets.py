"""Assets: listed, found by URI or name, with what surrounds them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.backend import TheReader
from assetflow.api.paging import Limit, Offset, Text, page
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.own import AssetOut, AssetsPage, GraphOut, NameOut
from assetflow.core.explanation.words import iso
from assetflow.core.lineage import DATA, SCHEDULING, EdgeKind, Node, neighbourhood
from assetflow.core.redaction import redact
from assetflow.errors import InvalidCall, UnknownAsset
from assetflow.ledger.catalog import AssetQuery, AssetUsers, ListedAsset
from assetflow.ledger.lookup import find_uri
from assetflow.ledger.reader import Reader

router = APIRouter(tags=["assets"], route_class=EtagRoute)

MOST_NODES = 500

Asked = Annotated[Text, Query(min_length=1, description="The asset's URI, or its name.", examples=["s3://shop/orders"])]


@router.get("/assets", response_model=AssetsPage, responses=answers())
def list_assets(
    reader: TheReader,
    search: Annotated[Text, Query(description="A part of the URI, of a name or of the group.")] = "",
    group: Annotated[Text | None, Query(description="Of this group.")] = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> Json:
    """Assets by URI. To page on, give `next` as `offset`."""
    query = AssetQuery(search=search, group=group)
    found, total = reader.catalog.assets(query, [("uri", False)], limit=limit, offset=offset)
    users = reader.catalog.users_of([each.record for each in found])
    items = [asset_to_json(each, users[each.record.uri]) for each in found]
    more = offset + len(items) if offset + len(items) < total and items else None
    return Json({**page(items, more), "total": total})


@router.get("/asset", response_model=AssetOut, responses=answers(404))
def get_asset(reader: TheReader, asset: Asked) -> Json:
    """One asset, by URI or name; of an unknown one the nearest matches are told."""
    uri = find_uri(reader, asset)
    found = reader.catalog.asset(uri=uri)
    if found is None:
        raise UnknownAsset(f"no asset is called {asset!r}", where="query.asset")
    return Json(asset_to_json(found, reader.catalog.users_of([found.record])[uri]))


@router.get("/lineage", response_model=GraphOut, responses=answers(404))
def get_lineage(
    reader: TheReader,
    asset: Annotated[Text, Query(description="The asset's URI, or its name.", examples=["s3://shop/orders"])] = "",
    node: Annotated[Text, Query(description="Any node, by the id that it has in these answers.")] = "",
    depth: Annotated[int, Query(ge=0, le=100, description="How many edges away.")] = 2,
    scheduling: Annotated[bool, Query(description="With edges that start flows.")] = True,
    data: Annotated[bool, Query(description="With edges of data: what flows produce and read.")] = True,
    limit: Annotated[int, Query(ge=1, le=MOST_NODES, description="At most so many nodes, the nearest.")] = 200,
) -> Json:
    """The graph around an asset: flows that it starts, that make and read it, and what comes of them.

    Name the `asset`, or the `node` of an answer to go on from there.
    """
    kinds: set[EdgeKind] = {*(SCHEDULING if scheduling else ()), *(DATA if data else ())}
    start = _start(reader, asset, node)
    return Json(neighbourhood(reader.edges_of, start, depth, kinds=kinds, most=limit).as_json())


def _start(reader: Reader, asset: str, node: str) -> Node:
    if bool(asset) == bool(node):
        raise InvalidCall("the graph is that around an asset or a node", where="query.asset", fix="Give one of them")
    found = Node.from_json(node) if node else Node("asset", asset)
    if found is None:
        raise InvalidCall(f"{node!r} is no node", where="query.node", fix="Give an id of the answer, flow:report/daily")
    return Node("asset", find_uri(reader, found.value)) if found.kind == "asset" else found


@router.get("/names/{name:path}", response_model=NameOut, responses=answers(404))
def get_owner(name: Text, reader: TheReader) -> Json:
    """The URI that a name belongs to."""
    uri = reader.owner_of(name)
    if uri is None:
        raise UnknownAsset(
            f"no asset is named {name!r}", where="path.name", fix="Ask /api/v1/asset for what is near it"
        )
    return Json({"name": name, "uri": uri})


def asset_to_json(found: ListedAsset, users: AssetUsers) -> dict[str, object]:
    """An asset with what surrounds it."""
    record = found.record
    return {
        "id": record.id,
        "uri": record.uri,
        "name": found.name,
        "names": list(record.names),
        "group": record.group,
        "extra": redact(record.extra),
        "aliases": list(record.aliases),
        "first_seen": iso(record.first_seen),
        "last_event": found.last_event,
        "last_update": iso(found.last_time),
        "producers": sorted(users.producers),
        "readers": sorted(users.readers),
        "consumers": sorted(users.scheduled),
    }
