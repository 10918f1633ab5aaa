"""Asset aliases, as Airflow lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Path

from assetflow.api.airflow_shapes import AliasesOut, AliasOut
from assetflow.api.problems import answers
from assetflow.api.requests import LARGEST, EtagRoute, Json, TheReader
from assetflow.api.v2.airflow_terms import (
    DEFAULT,
    Limit,
    Offset,
    OrderBy,
    Pattern,
    Prefix,
    alias_number,
    alias_to_json,
    alternatives,
    order_of,
    page_size,
)
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
        raise UnknownAsset(
            f"the asset alias with ID `{asset_alias_id}` was not found",
            where="path.asset_alias_id",
            fix="GET /api/v2/assets/aliases lists the aliases",
        )
    return Json(alias_to_json(found[0]))


def _wanted(name: str, pattern: str | None, prefix: str | None) -> bool:
    parts, beginnings = alternatives(pattern), alternatives(prefix)
    return (not parts or any(_is_like(name, part) for part in parts)) and (
        not beginnings or name.startswith(tuple(beginnings))
    )


def _is_like(name: str, pattern: str) -> bool:
    """Return True if SQL's `name ILIKE '%pattern%'` is true.

    The parts between two `%` are looked for one after the other: one regular expression for all of them would take
    longer with each `%`, without limit.
    """
    end = 0
    for part in _between_wildcards(pattern):
        found = part.search(name, end)
        if found is None:
            return False
        end = found.end()
    return True


def _between_wildcards(pattern: str) -> Iterator[re.Pattern[str]]:
    part = ""
    for sign in re.findall(r"\\.|.", pattern, re.DOTALL):
        if sign == "%":
            yield re.compile(part, re.IGNORECASE | re.DOTALL)
            part = ""
        else:
            part += "." if sign == "_" else re.escape(sign[-1])
    yield re.compile(part, re.IGNORECASE | re.DOTALL)
