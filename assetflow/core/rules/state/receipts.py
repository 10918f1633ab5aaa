"""The receipts in the state: what became of each event for each consumer (contract 3.5)."""

from __future__ import annotations

from collections.abc import Sequence

from assetflow.core.rules.state.changes import Changes, Consumed
from assetflow.core.rules.state.events import place_in_ledger
from assetflow.core.rules.state.source import StateSource
from assetflow.core.values.consumers import Decision, Receipt
from assetflow.core.values.events import AssetEvent


class Receipts:
    """The receipts. New ones are written to the changes, earlier ones are read from the source."""

    def __init__(self, source: StateSource, changes: Changes) -> None:
        self._source = source
        self._changes = changes

    def of(self, consumer: int, event: int) -> Sequence[Receipt]:
        """Return the receipts of an event for a consumer."""
        found: dict[str | None, Receipt] = {}
        if event < self._changes.first:
            found = {receipt.target_key: receipt for receipt in self._source.receipts(consumer, event)}
        for sequence, number, key, decision in self._changes.consumed:
            if (sequence, number) == (event, consumer):
                found[key] = found[key]._replace(status="consumed", decision=decision)
        for (number, key), receipt in self._changes.receipts.get(event, {}).items():
            if number == consumer:
                if receipt is None:
                    found.pop(key, None)
                else:
                    found[key] = receipt
        return list(found.values())

    def write(self, receipt: Receipt) -> None:
        """Write a receipt; it replaces the one of the same event, consumer and target key."""
        of_event = self._changes.receipts.get(receipt.event)
        if of_event is None:
            of_event = self._changes.receipts[receipt.event] = {}
        of_event[receipt.consumer, receipt.target_key] = receipt

    def consume(self, event: AssetEvent, decision: Decision) -> None:
        """Write that a decision consumed a queued event."""
        sequence, consumer, key = place_in_ledger(event), decision.consumer, decision.target_key
        if sequence < self._changes.first and sequence not in self._changes.receipts:
            self._changes.consumed.append(Consumed(sequence, consumer, key, decision.id))
        else:
            self.write(Receipt(sequence, event.asset.uri, consumer, "consumed", key, decision.id))

    def drop(self, event: int, consumer: int, target_key: str | None) -> None:
        """Delete a receipt."""
        self._changes.receipts.setdefault(event, {})[consumer, target_key] = None
