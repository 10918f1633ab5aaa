"""List assets, find one by its URI or name, and show the graph around it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.own_shapes import AssetHidden, NameOut
from assetflow.api.problems import answers
from assetflow.api.requests import (
    CountedPage,
    EtagRoute,
    Json,
    NamedAsset,
    PathAsset,
    Text,
    TheBackend,
    ThePage,
    TheReader,
)
from assetflow.core.graph.lineage import DATA, SCHEDULING, EdgeKind
from assetflow.errors import UnknownAsset, places
from assetflow.ledger.read.assets import AssetFilter, ShownAsset
from assetflow.operations import consumers
from assetflow.operations.graph import Lineage, lineage_of
from assetflow.operations.lookup import find_node, find_uri

router = APIRouter(tags=["assets"], route_class=EtagRoute)

MOST_NODES = 500
Focus = Annotated[
    Text,
    Query(
        min_length=1,
        description="An asset by URI or name, a flow, or any node by its id.",
        examples=["s3://shop/orders"],
    ),
]


@router.get("/assets", responses=answers())
def list_assets(
    reader: TheReader,
    page: ThePage,
    search: Annotated[Text, Query(description="A part of the URI, of a name or of the group.")] = "",
    group: Annotated[Text | None, Query(description="Of this group.")] = None,
    hidden: Annotated[bool, Query(description="Only those that are hidden, instead of all others.")] = False,
) -> CountedPage[ShownAsset]:
    """List assets by URI, without those that are hidden."""
    query = AssetFilter(search=search, group=group, hidden=hidden)
    found, total = reader.assets.page(query, [("uri", False)], limit=page.limit, offset=page.number or 0)
    users = reader.assets.users_of([each.record for each in found])
    shown = page.counted([each.shown(users[each.record.uri]) for each in found], total)
    return CountedPage(shown.items, shown.next, total)


@router.get("/asset", responses=answers(404))
def get_asset(reader: TheReader, asset: NamedAsset) -> ShownAsset:
    """Return one asset, by its URI or name. For an unknown one, the error names similar assets."""
    uri = find_uri(reader, asset)
    found = reader.assets.get(uri=uri)
    if found is None:
        raise UnknownAsset(f"no asset is called {asset!r}", where="query.asset")
    return found.shown(reader.assets.users_of([found.record])[uri])


@router.post("/assets/{asset:path}/hide", response_model=AssetHidden, responses=answers(404, 409, 415))
def hide_asset(
    asset: PathAsset,
    backend: TheBackend,
    by: Annotated[Text, Query(description="Who hides it.")] = "api",
) -> Json:
    """Hide an asset that no flow declares or runs on from lists, graph and search, until its next update.

    It is also shown while a flow declares it. Its events stay.
    """
    with places(asset="path.asset"):
        return Json({"uri": consumers.hide(backend, asset, by=by), "hidden": True})


@router.post("/assets/{asset:path}/unhide", response_model=AssetHidden, responses=answers(404, 415))
def unhide_asset(asset: PathAsset, backend: TheBackend) -> Json:
    """Show an asset again."""
    return Json({"uri": consumers.unhide(backend, asset), "hidden": False})


@router.get("/lineage", responses=answers(404))
def get_lineage(
    reader: TheReader,
    focus: Focus,
    depth: Annotated[int, Query(ge=0, le=100, description="The largest number of edges from the focus.")] = 2,
    scheduling: Annotated[bool, Query(description="Include edges that start flows.")] = True,
    data: Annotated[bool, Query(description="Include what flows produce, and what they only read.")] = True,
    limit: Annotated[int, Query(ge=1, le=MOST_NODES, description="The largest number of nodes, nearest first.")] = 200,
) -> Lineage:
    """Return the graph around an asset: the flows that it starts, that make it and that read it, and their assets.

    What starts flows goes on through what they produce: without `data`, only the edges of what is read are left out.
    To continue from a node of the answer, give its id as `focus`.
    """
    kinds: set[EdgeKind] = {*(SCHEDULING if scheduling else ()), *(DATA if data else ())}
    return lineage_of(reader, find_node(reader, focus), depth, kinds=kinds, most=limit)


@router.get("/names/{name:path}", response_model=NameOut, responses=answers(404))
def get_owner(name: Text, reader: TheReader) -> Json:
    """Return the URI that a name belongs to."""
    uri = reader.assets.owner_of(name)
    if uri is None:
        raise UnknownAsset(
            f"no asset is named {name!r}", where="path.name", fix="GET /api/v1/asset names similar assets"
        )
    return Json({"name": name, "uri": uri})
