"""Of very many events those that an explanation needs: the oldest, and behind them the first of each asset and key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select

from assetflow.core.events import AssetEvent
from assetflow.ledger.among import among
from assetflow.ledger.rows import EVENT_COLUMNS, event_from_row
from assetflow.ledger.tables import EVENT, RECEIPT

_EVENTS = select(*EVENT_COLUMNS).order_by(EVENT.c.sequence)
_OF_RECEIPTS = select(*EVENT_COLUMNS).join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence).order_by(RECEIPT.c.sequence)
_GROUPS = (
    select(EVENT.c.uri, func.min(EVENT.c.sequence), func.count())
    .join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    .group_by(EVENT.c.uri, EVENT.c.partition_key)
)


@dataclass(frozen=True)
class Oldest:
    """Events in ledger order.

    Attributes:
        counts: how many there are of each asset, by URI, also of those that were not read.
    """

    events: tuple[AssetEvent, ...]
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


def oldest(
    connection: Connection,
    receipts: ColumnElement[bool],
    most: int,
    counted: Mapping[tuple[str, str | None], int] | None = None,
) -> Oldest:
    """The events of these receipts; of more than `most` the oldest, and the first of each asset and key.

    Parameters:
        counted: how many there are of each asset and key, where that is known without counting them.
    """
    rows = connection.execute(_OF_RECEIPTS.where(receipts).limit(most))
    found = tuple(event_from_row(row) for row in rows)
    if len(found) < most:
        return Oldest(found, Counter(event.uri for event in found))
    counts: Counter[str] = Counter()
    if counted is not None and counted.keys() <= {(event.uri, event.partition_key) for event in found}:
        for (uri, _), number in counted.items():
            counts[uri] += number
        return Oldest(found, counts)
    behind: list[int] = []
    for uri, first, number in connection.execute(_GROUPS.where(receipts)):
        counts[uri] += number
        if first > (found[-1].sequence or 0):
            behind.append(first)
    others = connection.execute(_EVENTS.where(among(EVENT.c.sequence, "behind")), {"behind": behind})
    return Oldest((*found, *(event_from_row(row) for row in others)), counts)
