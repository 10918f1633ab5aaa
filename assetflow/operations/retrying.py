"""Let an Eager or Lazy consumer try again what it tried or waived. Contract 8.7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assetflow.core.consumers import Decision
from assetflow.errors import LedgerForeign
from assetflow.ledger.records import ConsumerRecord
from assetflow.operations.installation import Installation


@dataclass(frozen=True)
class Retried:
    """The result of a retry.

    Attributes:
        consumer: `flow/deployment`.
        partition_key: the target key; `None` for all targets.
        decisions: the decisions that follow at once. The others wait for what holds them back (`assetflow plan`).
    """

    consumer: str
    partition_key: str | None
    decisions: Sequence[Decision]

    def as_json(self) -> dict[str, object]:
        """Return the retry as JSON."""
        made = [
            {"id": str(each.id), "consumer": self.consumer, "target_key": each.target_key} for each in self.decisions
        ]
        return {"consumer": self.consumer, "target_key": self.partition_key, "decisions": made}


def retry(at: Installation, record: ConsumerRecord, key: str | None = None) -> Retried:
    """Forget what a consumer tried and waived, so that the pass that follows asks for what is out of date.

    Parameters:
        key: only of this target key; `None` for all.

    Raises:
        InvalidCall: the consumer is neither Eager nor Lazy, or has no such key; `where` is `consumer` or `key`.
        LedgerForeign: another ledger decides.
    """
    other = at.other_ledger()
    if other is not None:
        raise LedgerForeign(
            f"this ledger no longer decides, ledger {other} has taken over; nothing would run",
            fix="Retry on the machine of that ledger",
        )
    consumer = record.consumer
    made = at.ledger.writer.freshness.retry(consumer.id, key, at.now())
    at.on_recorded()
    return Retried(consumer.name, key, [each for each in made if each.consumer == consumer.id])
