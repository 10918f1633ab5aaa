"""The readable name of an asset, as an expression for statements that read from the table of assets."""

from __future__ import annotations

from sqlalchemy import and_, func, select

from assetflow.ledger.sql.tables import ASSET, ASSET_NAME, EDGE

# Before an asset has a name, it is called as a deployed flow declares, or else by its URI.
READABLE_NAME = func.coalesce(
    select(func.min(ASSET_NAME.c.name))
    .where(ASSET_NAME.c.uri == ASSET.c.uri, ASSET_NAME.c.name != ASSET.c.uri)
    .scalar_subquery(),
    select(func.min(EDGE.c.label)).where(and_(EDGE.c.kind == "uri", EDGE.c.value == ASSET.c.uri)).scalar_subquery(),
    ASSET.c.uri,
)
