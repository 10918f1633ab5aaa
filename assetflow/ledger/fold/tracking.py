"""Begin to compare an asset: its updates that were recorded before get their versions (contract 8.2, 8.5).

What a flow made before is from then on made from what was there when it was recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal,
    null,
    select,
    type_coerce,
    update,
)

from assetflow.ledger.sql.freshness_tables import ITEM, ITEM_VERSION
from assetflow.ledger.sql.functions import insert_into, text_at
from assetflow.ledger.sql.tables import EVENT, NO_KEY

_V = ITEM_VERSION.c
_NEWEST = select(func.coalesce(func.max(_V.sequence), 0)).where(_V.uri == bindparam("of_uri"))
_NEW = (EVENT.c.uri == bindparam("of_uri"), EVENT.c.sequence > bindparam("after"))
_KEY = func.coalesce(EVENT.c.partition_key, NO_KEY)
_COLUMNS = (
    "uri",
    "partition_key",
    "sequence",
    "confirms",
    "event",
    "data_version",
    "recorded",
    "pins",
    "code_version",
)


def track(connection: Connection, uri: str, makers: Mapping[UUID, int]) -> None:
    """Give the updates of an asset that were recorded while nothing compared it their versions.

    Parameters:
        makers: the numbers of the flows that make it, by deployment.
    """
    given = {"of_uri": uri, "after": connection.scalar(_NEWEST, {"of_uri": uri})}
    connection.execute(insert(ITEM_VERSION).from_select(_COLUMNS, _versions(connection)), given)
    for deployment_id, consumer in makers.items():
        made = select(EVENT.c.id).where(
            *_NEW, text_at(EVENT.c.origin, "flow_run", "deployment_id") == str(deployment_id)
        )
        rows = update(ITEM_VERSION).where(_V.uri == bindparam("of_uri"), _V.event.in_(made))
        connection.execute(rows.values(consumer=consumer, pins=null()), given)
    newest = select(EVENT.c.uri, _KEY, func.max(EVENT.c.sequence)).where(*_NEW).group_by(EVENT.c.uri, _KEY)
    items = insert_into(ITEM, connection.dialect.name).from_select(["uri", "partition_key", "sequence"], newest)
    changes = {"sequence": items.excluded.sequence}
    connection.execute(items.on_conflict_do_update(index_elements=["uri", "partition_key"], set_=changes), given)


def _versions(connection: Connection) -> Select[Any]:
    """Return the query for the new rows: an update without a version of its own has its id as version."""
    text = type_coerce(cast(EVENT.c.id, Text), Text)
    own = text if connection.dialect.name == "postgresql" else _with_dashes(text)
    has_pins = cast(EVENT.c.inputs, Text) != literal("{}")
    return select(
        EVENT.c.uri,
        _KEY,
        EVENT.c.sequence,
        literal(0),
        EVENT.c.id,
        func.coalesce(EVENT.c.data_version, own),
        EVENT.c.recorded,
        case((has_pins, EVENT.c.inputs)),
        EVENT.c.code_version,
    ).where(*_NEW)


def _with_dashes(digits: ColumnElement[str]) -> ColumnElement[str]:
    parts = [func.substr(digits, start, length) for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    return reduce(lambda before, part: before + "-" + part, parts)
