"""Remove queued events, as an operator. Contract 3.7."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select

from assetflow.core.rules import clock, registry
from assetflow.core.rules.fold import Touched
from assetflow.core.rules.removal import NamedEvents
from assetflow.ledger.sql.rows import QUEUED
from assetflow.ledger.sql.tables import EVENT, PENDING, RECEIPT
from assetflow.ledger.write.consumers import find_consumer
from assetflow.ledger.write.store import Store


class QueueWriter:
    """Writes queues. All methods raise `LedgerLocked` and `LedgerError` if the ledger cannot be written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def remove(
        self,
        consumer: int | None,
        *,
        uri: str | None = None,
        event_id: UUID | None = None,
        before: datetime | None = None,
        target_key: str | None = None,
        by: str = "",
        why: str = "",
        now: datetime,
        late: bool = False,
    ) -> int:
        """Remove queued events and return the number of receipts that say so.

        Parameters:
            consumer: its id; `None` for all consumers that have events of `uri`, or this event, queued.
            uri: only events of this asset.
            event_id: only this event.
            before: only events that were recorded before this time.
            target_key: the pending partition; `None` for the plain queue.
            by, why: who removes them, and the reason; the receipts keep both.
            late: updates of before now may not be recorded yet. Then nothing is decided for a timed queue.

        Raises:
            UnknownConsumer: no consumer has this id.
        """
        named = NamedEvents(uri, event_id, before)
        with self._store.transaction(now) as unit:
            numbers = _holders(unit.connection, uri, event_id) if consumer is None else [consumer]
            consumers = [find_consumer(unit, number) for number in numbers]
            removed = 0
            for each in consumers:
                settled = [] if late else clock.settle(unit.state, each, now)
                removed += registry.remove_queued(unit.state, each, named.has, [target_key], by=by, why=why)
                touched: Touched = {each.id: (each, {target_key})}
                self._store.pass_over_changed(unit.state, touched, now, late=late, settled=settled)
            return removed


def _holders(connection: Connection, uri: str | None, event_id: UUID | None) -> list[int]:
    """Return the consumers with events of this asset, or with this event, in their plain queues."""
    if uri is not None:
        query: Any = select(PENDING.c.consumer).where(PENDING.c.uri == uri).distinct().order_by(PENDING.c.consumer)
    else:
        query = select(RECEIPT.c.consumer).join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
        query = query.where(EVENT.c.id == event_id, RECEIPT.c.status == QUEUED).distinct().order_by(RECEIPT.c.consumer)
    return list(connection.scalars(query))
