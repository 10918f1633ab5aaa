"""Asset aliases, as Airflow lists them."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Path

from assetflow.api.backend import TheReader
from assetflow.api.paging import LARGEST
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.airflow import AliasesOut, AliasOut
from assetflow.api.v2.airflow_terms import DEFAULT, alias_number, alias_to_json, alternatives, order_of, page_size
from assetflow.api.v2.params import Limit, Offset, OrderBy, Pattern, Prefix
from assetflow.errors import UnknownAsset

router = APIRouter(tags=["Airflow: assets"], route_class=EtagRoute)


@router.get("/assets/aliases", response_model=AliasesOut, responses=answers())
def get_asset_aliases(
    reader: TheReader,
    limit: Limit = DEFAULT,
    offset: Offset = 0,
    name_pattern: Pattern = None,
    name_prefix_pattern: Prefix = None,
    order_by: OrderBy = [],  # noqa: B006 (FastAPI copies it)
) -> Json:
    """Get asset aliases."""
    order = order_of(order_by, ("id", "name"))
    names = [name for name in reader.assets.aliases() if _wanted(name, name_pattern, name_prefix_pattern)]
    for by, descends in reversed(order):
        names.sort(key=alias_number if by == "id" else str, reverse=descends)
    shown = names[offset : offset + page_size(limit)]
    return Json({"asset_aliases": [alias_to_json(name) for name in shown], "total_entries": len(names)})


@router.get("/assets/aliases/{asset_alias_id}", response_model=AliasOut, responses=answers(404))
def get_asset_alias(asset_alias_id: Annotated[int, Path(ge=0, le=LARGEST)], reader: TheReader) -> Json:
    """Get an asset alias."""
    found = [name for name in reader.assets.aliases() if alias_number(name) == asset_alias_id]
    if not found:
        raise UnknownAsset(f"the asset alias with ID `{asset_alias_id}` was not found", where="path.asset_alias_id")
    return Json(alias_to_json(found[0]))


def _wanted(name: str, pattern: str | None, prefix: str | None) -> bool:
    parts, beginnings = alternatives(pattern), alternatives(prefix)
    return (not parts or any(_like(part).search(name) for part in parts)) and (
        not beginnings or name.startswith(tuple(beginnings))
    )


def _like(text: str) -> re.Pattern[str]:
    """Return a regular expression that finds what SQL's `LIKE '%text%'` finds."""
    wild = {"%": ".*", "_": "."}
    return re.compile("".join(wild.get(each, re.escape(each)) for each in text), re.IGNORECASE | re.DOTALL)
