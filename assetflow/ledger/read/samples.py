"""Samples of long queues and large decisions: the oldest events, and behind them the first of each asset and key."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, and_, func, not_, select

from assetflow.core.values.events import AssetEvent
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.rows import EVENT_COLUMNS, event_from_row
from assetflow.ledger.sql.tables import EVENT, RECEIPT

AssetKey = tuple[str, str | None]

_EVENTS = select(*EVENT_COLUMNS).order_by(EVENT.c.sequence)
_OF_RECEIPTS = select(*EVENT_COLUMNS).join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence).order_by(RECEIPT.c.sequence)
# Sorting takes longest: updates without a key of an asset that is known are left out before.
_FIRST = (
    select(EVENT.c.uri, EVENT.c.partition_key, func.min(EVENT.c.sequence))
    .join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    .where(not_(and_(EVENT.c.partition_key.is_(None), in_values(EVENT.c.uri, "known"))))
    .group_by(EVENT.c.uri, EVENT.c.partition_key)
)


@dataclass(frozen=True)
class EventSample:
    """A sample of events, in the order of the ledger.

    Attributes:
        total: the number of events that the sample stands for.
        counts: of a queue, the number of events of each asset, by URI, including those that are not in the sample.
    """

    events: tuple[AssetEvent, ...]
    total: int
    counts: Mapping[str, int] = field(default_factory=dict[str, int])


def sample(
    connection: Connection,
    receipts: ColumnElement[bool],
    most: int,
    there: Collection[AssetKey] | None = None,
) -> tuple[AssetEvent, ...]:
    """Return the events of these receipts; of more than `most` the oldest, and the first of each asset and key.

    Parameters:
        there: the assets and keys of all events, where they are known without reading the events.
    """
    rows = connection.execute(_OF_RECEIPTS.where(receipts).limit(most)).all()
    oldest = tuple(event_from_row(row) for row in rows)
    seen = {(event.uri, event.partition_key) for event in oldest}
    if len(oldest) < most or (there is not None and seen.issuperset(there)):
        return oldest
    behind = _firsts(connection, receipts, oldest[-1].sequence or 0, seen)
    others = connection.execute(_EVENTS.where(in_values(EVENT.c.sequence, "behind")), {"behind": behind}).all()
    return (*oldest, *(event_from_row(row) for row in others))


def _firsts(
    connection: Connection, receipts: ColumnElement[bool], after: int, seen: Collection[AssetKey]
) -> Sequence[int]:
    """Return the sequence of the first event of each asset and key that comes only after a sequence."""
    query = _FIRST.where(receipts, RECEIPT.c.sequence > after)
    rows = connection.execute(query, {"known": [uri for uri, key in seen if key is None]}).all()
    return [first for uri, key, first in rows if (uri, key) not in seen]
