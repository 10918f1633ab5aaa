"""Samples of long queues and large decisions: the oldest events, and behind them the first of each asset and key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select

from assetflow.core.events import AssetEvent
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.rows import EVENT_COLUMNS, event_from_row
from assetflow.ledger.sql.tables import EVENT, RECEIPT

_EVENTS = select(*EVENT_COLUMNS).order_by(EVENT.c.sequence)
_OF_RECEIPTS = select(*EVENT_COLUMNS).join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence).order_by(RECEIPT.c.sequence)
_GROUPS = (
    select(EVENT.c.uri, func.min(EVENT.c.sequence), func.count())
    .join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    .group_by(EVENT.c.uri, EVENT.c.partition_key)
)


@dataclass(frozen=True)
class EventSample:
    """A sample of events, in the order of the ledger.

    Attributes:
        counts: the number of events of each asset, by URI, including those that are not in the sample.
    """

    events: tuple[AssetEvent, ...]
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """The number of events that the sample stands for."""
        return sum(self.counts.values())


def sample(
    connection: Connection,
    receipts: ColumnElement[bool],
    most: int,
    counted: Mapping[tuple[str, str | None], int] | None = None,
) -> EventSample:
    """Return the events of these receipts; of more than `most` the oldest, and the first of each asset and key.

    Parameters:
        counted: the number of events of each asset and key, where it is known without counting them.
    """
    rows = connection.execute(_OF_RECEIPTS.where(receipts).limit(most))
    found = tuple(event_from_row(row) for row in rows)
    if len(found) < most:
        return EventSample(found, Counter(event.uri for event in found))
    counts: Counter[str] = Counter()
    if counted is not None and counted.keys() <= {(event.uri, event.partition_key) for event in found}:
        for (uri, _), number in counted.items():
            counts[uri] += number
        return EventSample(found, counts)
    behind: list[int] = []
    for uri, first, number in connection.execute(_GROUPS.where(receipts)):
        counts[uri] += number
        if first > (found[-1].sequence or 0):
            behind.append(first)
    others = connection.execute(_EVENTS.where(in_values(EVENT.c.sequence, "behind")), {"behind": behind})
    return EventSample((*found, *(event_from_row(row) for row in others)), counts)
