"""Receipts: what became of events for consumers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select

from assetflow.ledger.records import ReceiptRecord
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.rows import RECEIPT_COLUMNS, RECEIPTS, key_from_column, receipt_from_row
from assetflow.ledger.sql.tables import CONSUMER, DECISION, EVENT, RECEIPT

_COUNTS = (
    select(RECEIPT.c.sequence, RECEIPT.c.status, func.count())
    .where(in_values(RECEIPT.c.sequence, "sequences"))
    .group_by(RECEIPT.c.sequence, RECEIPT.c.status)
    .order_by(RECEIPT.c.sequence, RECEIPT.c.status)
)
_OTHER = RECEIPT.alias("other")
_CONSUMED = (
    select(
        RECEIPT.c.sequence,
        DECISION.c.id,
        CONSUMER.c.name,
        DECISION.c.target_key,
        DECISION.c.made,
        DECISION.c.status,
        DECISION.c.flow_run_id,
        DECISION.c.launched,
        DECISION.c.ended,
        DECISION.c.run_state,
        select(func.max(_OTHER.c.sequence))
        .where(_OTHER.c.decision == RECEIPT.c.decision, _OTHER.c.decision.is_not(None))
        .scalar_subquery(),
    )
    .select_from(
        RECEIPT.join(DECISION, DECISION.c.number == RECEIPT.c.decision).join(
            CONSUMER, CONSUMER.c.id == DECISION.c.consumer
        )
    )
    .where(in_values(RECEIPT.c.sequence, "sequences"))
    .order_by(RECEIPT.c.sequence, DECISION.c.number)
)


@dataclass(frozen=True)
class ConsumedBy:
    """A decision that consumed an event; `newest` is the sequence of the newest event that it consumed."""

    decision: UUID
    consumer_name: str
    target_key: str | None
    made: datetime
    status: str
    flow_run_id: UUID | None
    launched: datetime | None
    ended: datetime | None
    run_state: str
    newest: int


class ReceiptReader:
    """Reads receipts. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    def of_event(self, event_id: UUID, *, limit: int | None = None, offset: int = 0) -> list[ReceiptRecord]:
        """Return the receipts of an event, by consumer and target key."""
        query = select(*RECEIPT_COLUMNS, CONSUMER.c.name, RECEIPT.c.at).select_from(
            RECEIPTS.outerjoin(CONSUMER, CONSUMER.c.id == RECEIPT.c.consumer)
        )
        query = query.where(EVENT.c.id == event_id).order_by(RECEIPT.c.consumer, RECEIPT.c.target_key)
        with self._connect() as connection:
            rows = connection.execute(query.limit(limit).offset(offset or None))
            return [ReceiptRecord(receipt_from_row(row), row[-2], row[-1]) for row in rows]

    def counts(self, sequences: Collection[int]) -> dict[int, dict[str, int]]:
        """Return how many receipts of each status these events have, by the events' sequences."""
        found: defaultdict[int, dict[str, int]] = defaultdict(dict)
        with self._connect() as connection:
            for sequence, status, number in connection.execute(_COUNTS, {"sequences": list(sequences)}):
                found[sequence][status] = number
        return found

    def consumed_by(self, sequences: Collection[int]) -> dict[int, list[ConsumedBy]]:
        """Return the decisions that consumed these events, by the events' sequences."""
        found: defaultdict[int, list[ConsumedBy]] = defaultdict(list)
        with self._connect() as connection:
            for row in connection.execute(_CONSUMED, {"sequences": list(sequences)}):
                sequence, decision, name, key, *rest = row
                found[sequence].append(ConsumedBy(decision, name, key_from_column(key), *rest))
        return found
