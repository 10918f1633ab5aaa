"""The list of assets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from assetflow.api.requests import LARGEST, Now, Text, TheReader
from assetflow.core.explain.status import Status
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.ledger.read.assets import AssetFilter, Order
from assetflow.ledger.read.reader import Reader
from assetflow.operations.needs import too_old_now, too_old_soon
from assetflow.web.pages import PagePlaces, ThePages, url

router = APIRouter()

ROWS = 50
Sort = Literal["name", "-name", "updated", "-updated", "group", "-group"]
Show = Literal["", "old", "soon", "fresh", "outdated", "stale", "missing", "watcher", "hidden"]

_ORDERS: Mapping[Sort, Order] = {
    "name": (("name", False),),
    "-name": (("name", True),),
    "updated": (("updated_at", True),),
    "-updated": (("updated_at", False),),
    "group": (("group", False), ("name", False)),
    "-group": (("group", True), ("name", False)),
}
_OF_STATUS: Mapping[Show, Callable[[Status], bool]] = {
    "fresh": lambda each: each.state == "fresh" and not each.outdated,
    "outdated": lambda each: each.state == "fresh" and each.outdated,
    "stale": lambda each: each.state == "stale",
    "missing": lambda each: each.state == "missing",
}
# Each filter with its label, and what there has to be so that it can find something.
_SHOWS: tuple[tuple[Show, str, str], ...] = (
    ("old", "Too old", "policy"),
    ("soon", "Too old at the next deadline", "policy"),
    ("fresh", "Fresh", "status"),
    ("outdated", "Fresh, outdated", "status"),
    ("stale", "Stale", "status"),
    ("missing", "Missing", "status"),
    ("watcher", "A watcher fails", "watcher"),
    ("hidden", "Hidden", ""),
)


@dataclass(frozen=True)
class AssetFilters:
    """Which assets the list shows.

    Attributes:
        show: those that are too old by their freshness policy, or `soon` will be; those in a state; those with a
            `watcher` that fails; those that are hidden, instead of all others.
        offset: how many come before the page.
    """

    search: Text = ""
    group: Text = ""
    show: Show = ""
    sort: Sort = "name"
    offset: Annotated[int, Query(ge=0, le=LARGEST)] = 0

    def address(self, offset: int = 0) -> str:
        sort = "" if self.sort == "name" else self.sort
        return url("/assets", search=self.search, group=self.group, show=self.show, sort=sort, offset=offset or None)

    def sorted_by(self, order: Sort) -> str:
        """Return the address of the same list in another order."""
        return replace(self, sort=order).address()


@router.get("/assets")
def list_assets(
    request: Request, pages: ThePages, reader: TheReader, now: Now, asked: Annotated[AssetFilters, Depends()]
) -> Response:
    """Show a page of assets; if an Eager flow needs some, with the status of each."""
    policies = {each.uri: each for each in reader.policies.all()}
    compares = reader.freshness.compares()
    query = AssetFilter(search=asked.search.strip(), group=asked.group or None, hidden=asked.show == "hidden")
    query = replace(query, uris=_shown(reader, now, asked.show, list(policies.values())))
    found, total = reader.assets.page(query, _ORDERS[asked.sort], limit=ROWS, offset=asked.offset)
    uris = [each.record.uri for each in found]
    statuses = reader.freshness.statuses(uris, now) if compares else []
    return pages.show(
        request,
        "assets.html",
        fragment="list",
        found=found,
        has_uris=any(each.name != each.record.uri for each in found),
        statuses={each.uri: each for each in statuses},
        policies={uri: policies[uri] for uri in uris if uri in policies},
        now=now,
        users=reader.assets.users_of([each.record for each in found]),
        groups=[each for each in reader.assets.groups() if each],
        shows=_shows(reader, has_policies=bool(policies), compares=compares),
        search=asked.search,
        group=asked.group,
        show=asked.show,
        sort=asked.sort,
        by=asked.sorted_by,
        here=asked.address(asked.offset),
        places=PagePlaces.of(asked.address, asked.offset, ROWS, total),
    )


def _shown(reader: Reader, now: datetime, show: Show, policies: Sequence[AssetFreshness]) -> list[str] | None:
    """Return the URIs of the assets to list; `None` for all."""
    if show == "old":
        return [each.uri for each in too_old_now(policies)]
    if show == "soon":
        return [each.uri for _, each in too_old_soon(reader, policies, now)]
    if show == "watcher":
        return [asset.uri for each in reader.watchers.failing() for asset in each.assets]
    if show in _OF_STATUS:
        return [each.uri for each in reader.freshness.statuses(None, now) if _OF_STATUS[show](each)]
    return None


def _shows(reader: Reader, *, has_policies: bool, compares: bool) -> list[tuple[Show, str]]:
    """Return the filters that can find something, each with its label."""
    has = {"policy": has_policies, "status": compares, "watcher": reader.watchers.any(), "": True}
    return [(show, label) for show, label, needs in _SHOWS if has[needs]]
