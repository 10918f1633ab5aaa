"""The readable name of an asset, as an expression for statements that read from the table of assets."""

from __future__ import annotations

from sqlalchemy import func, select

from assetflow.ledger.sql.tables import ASSET, ASSET_NAME

READABLE_NAME = func.coalesce(
    select(func.min(ASSET_NAME.c.name))
    .where(ASSET_NAME.c.uri == ASSET.c.uri, ASSET_NAME.c.name != ASSET.c.uri)
    .scalar_subquery(),
    ASSET.c.uri,
)
