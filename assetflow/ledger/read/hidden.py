"""Which assets are hidden: those that an operator hid, until their next update or while a flow declares them.

Nothing is written when an asset is updated or declared: whether it is hidden is worked out when it is read.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Table, and_, exists, or_, select

from assetflow.ledger.sql.tables import ALIAS_LINK, ASSET_NAME, CONSUMER_TOKEN, EDGE, EVENT, HIDDEN_ASSET

_URI = HIDDEN_ASSET.c.uri


def _named_in(table: Table) -> ColumnElement[bool]:
    """Return the condition that rows of schedules or declarations name the hidden asset."""
    names = select(ASSET_NAME.c.name).where(ASSET_NAME.c.uri == _URI).correlate(HIDDEN_ASSET)
    aliases = select(ALIAS_LINK.c.alias).where(ALIAS_LINK.c.uri == _URI).correlate(HIDDEN_ASSET)
    return or_(
        and_(table.c.kind == "uri", table.c.value == _URI),
        and_(table.c.kind == "name", table.c.value.in_(names)),
        and_(table.c.kind == "alias", table.c.value.in_(aliases)),
    )


HIDDEN = select(_URI).where(
    ~exists().where(EVENT.c.uri == _URI, EVENT.c.sequence > HIDDEN_ASSET.c.sequence),
    ~exists().where(_named_in(CONSUMER_TOKEN)),
    ~exists().where(_named_in(EDGE)),
)
"""Selects the URIs of the hidden assets."""
