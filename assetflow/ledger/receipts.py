"""Receipts in the ledger's book."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select

from assetflow.core.consumers import Decision, Receipt
from assetflow.core.events import AssetEvent
from assetflow.core.fold import place_in_ledger
from assetflow.errors import LedgerError
from assetflow.ledger.bulk import delete_rows, insert_rows, update_rows, upsert_rows
from assetflow.ledger.rows import RECEIPT_COLUMNS, RECEIPTS, key_to_column, receipt_from_row
from assetflow.ledger.tables import NO_CONSUMER, RECEIPT
from assetflow.ledger.work import Work

_KEY = (RECEIPT.c.sequence, RECEIPT.c.consumer, RECEIPT.c.target_key)
_VALUES = (RECEIPT.c.status, RECEIPT.c.decision, RECEIPT.c.by, RECEIPT.c.why, RECEIPT.c.error, RECEIPT.c.at)
_ADD = insert_rows((*_KEY, *_VALUES))
_CHANGE = upsert_rows(_KEY, _VALUES)
_CONSUME = update_rows(_KEY, (RECEIPT.c.decision, RECEIPT.c.at), status="consumed")
_DROP = delete_rows(_KEY)


class Receipts:
    """The receipts of a transaction, written by `flush`; those before it are read when asked for."""

    def __init__(self, work: Work) -> None:
        self._work = work
        # By event, then by consumer and key; none for one that is taken away.
        self._written: dict[int, dict[tuple[int, str], Receipt | None]] = defaultdict(dict)
        # Rows that say "queued" in the table and are consumed. Most of what a decision changes is of this kind.
        self._consumed: list[tuple[int, int, str, int, datetime]] = []
        self._decisions: dict[int, UUID] = {}  # number to id

    def of(self, consumer: int, event: int) -> Sequence[Receipt]:
        """What became of an event for a consumer."""
        found: dict[str, Receipt] = {}
        if event < self._work.first:
            of_event = RECEIPT.c.sequence == event, RECEIPT.c.consumer == consumer
            query = select(*RECEIPT_COLUMNS).select_from(RECEIPTS).where(*of_event)
            rows = self._work.connection.execute(query)
            found = {key_to_column(receipt.target_key): receipt for receipt in map(receipt_from_row, rows)}
        found |= {
            key: found[key]._replace(status="consumed", decision=self._decisions[decision])
            for sequence, number, key, decision, _ in self._consumed
            if (sequence, number) == (event, consumer)
        }
        for (number, key), receipt in self._written.get(event, {}).items():
            if number == consumer:
                if receipt is None:
                    found.pop(key, None)
                else:
                    found[key] = receipt
        return list(found.values())

    def write(self, receipt: Receipt) -> None:
        """Write a receipt in the place of the one before it."""
        consumer = NO_CONSUMER if receipt.consumer is None else receipt.consumer
        self._written[receipt.event][consumer, key_to_column(receipt.target_key)] = receipt

    def consume(self, event: AssetEvent, decision: Decision, number: int) -> None:
        """Write that the decision with this number consumes a queued event."""
        sequence, consumer, key = place_in_ledger(event), decision.consumer, decision.target_key
        if sequence < self._work.first and sequence not in self._written:
            self._decisions[number] = decision.id
            self._consumed.append((sequence, consumer, key_to_column(key), number, self._work.now))
        else:
            self.write(Receipt(sequence, event.asset.uri, consumer, "consumed", key, decision.id))

    def drop(self, event: int, consumer: int, target_key: str | None) -> None:
        """Take a receipt away."""
        self._written[event][consumer, key_to_column(target_key)] = None

    def flush(self, numbers: Mapping[UUID, int]) -> None:
        """Write what is new. `numbers`: those of the decisions made in this transaction."""
        new: list[tuple[Any, ...]] = []
        changed: list[tuple[Any, ...]] = []
        gone: list[tuple[int, int, str]] = []
        now = self._work.now
        for event, receipts in self._written.items():
            is_new = event >= self._work.first
            rows = new if is_new else changed
            for (consumer, key), receipt in receipts.items():
                if receipt is not None:
                    decision = None if receipt.decision is None else numbers[receipt.decision]
                    stands = (receipt.status, decision, receipt.by, receipt.why, receipt.error, now)
                    rows.append((event, consumer, key, *stands))
                elif not is_new:
                    gone.append((event, consumer, key))
        connection = self._work.connection
        # In the order of the table: neighbours share its pages. What was written after it was consumed comes last.
        if _CONSUME.run(connection, sorted(self._consumed)) != len(self._consumed):
            raise LedgerError(
                "updates that are consumed are not queued in the ledger as this process remembers it",
                fix="Nothing was written; the next attempt reads everything anew",
            )
        _DROP.run(connection, gone)
        _CHANGE.run(connection, sorted(changed))
        _ADD.run(connection, new)
        for written in (self._written, self._consumed, self._decisions):
            written.clear()
