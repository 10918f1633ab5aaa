"""The list of assets, with search, groups, and the last update of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheBackend
from assetflow.api.paging import LARGEST, Text
from assetflow.ledger.read.assets import AssetFilter, Order
from assetflow.web.pages import PagePlaces, ThePages, url

router = APIRouter()

ROWS = 50
Sort = Literal["name", "updated"]

_ORDERS: dict[Sort, Order] = {"name": (("name", False),), "updated": (("updated_at", True),)}


@router.get("/assets")
def list_assets(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    search: Text = "",
    group: Text = "",
    sort: Sort = "name",
    late: bool = False,
    hidden: bool = False,
    offset: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
) -> Response:
    """Show a page of assets; if an Eager flow needs some, with the status of each.

    Parameters:
        late: only those that are older than their freshness policy allows, or soon will be.
        hidden: only those that are hidden, instead of all others.
    """
    reader = backend.ledger.reader
    query = AssetFilter(search=search.strip(), group=group or None, hidden=hidden)
    if late:
        query = replace(query, uris=[each.uri for each in reader.policies.all() if each.is_late])
    found, total = reader.assets.page(query, _ORDERS[sort], limit=ROWS, offset=offset)
    uris = [each.record.uri for each in found]
    statuses = reader.freshness.statuses(uris, backend.now()) if reader.freshness.compares() else []

    def at(place: int) -> str:
        return url(
            "/assets",
            search=search,
            group=group,
            sort="" if sort == "name" else sort,
            late="true" if late else "",
            hidden="true" if hidden else "",
            offset=place or None,
        )

    return pages.show(
        request,
        "assets.html",
        fragment="list",
        found=found,
        statuses={each.uri: each for each in statuses},
        users=reader.assets.users_of([each.record for each in found]),
        groups=[each for each in reader.assets.groups() if each],
        search=search,
        group=group,
        sort=sort,
        late=late,
        hidden=hidden,
        here=at(offset),
        places=PagePlaces.of(at, offset, ROWS, total),
    )
