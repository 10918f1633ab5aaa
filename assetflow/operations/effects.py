"""The effects of an update that a user has just recorded: the consumers that queue it, and those that refuse it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from assetflow.core.consumers import Consumer
from assetflow.core.events import AssetEvent

if TYPE_CHECKING:
    from assetflow.ledger.read.reader import Reader

_REFUSED = ("dropped", "not_for_consumer", "not_mapped")
# The similarity, at most 1, from which one URI may be a typing error for another.
_ALIKE = 0.85


@dataclass(frozen=True)
class Effects:
    """The effects of an update.

    Attributes:
        queued: the consumers that have the update in their queues, each with True if it is paused.
        refused: for each consumer that refuses the update, a sentence with the reason.
        nearest: the URI that the user probably meant, if no consumer queues the update; else an empty text.
    """

    queued: Mapping[str, bool] = field(default_factory=dict[str, bool])
    refused: Sequence[str] = ()
    nearest: str = ""


def effects_of(reader: Reader, event: AssetEvent) -> Effects:
    """Return the effects of an update that is in the ledger."""
    # Who only sends an update to Prefect does not wait for SQLAlchemy.
    from assetflow.ledger.read.explanations import event_explanation

    receipts = event_explanation(reader, event.id).receipts
    consumers = [record.consumer for record in reader.consumers.all()]
    queued = {each.consumer for each in receipts if each.receipt.status == "queued"}
    return Effects(
        queued={each.name: each.paused for each in consumers if each.name in queued},
        refused=[each.words for each in receipts if each.receipt.status in _REFUSED],
        nearest="" if receipts and receipts[0].consumer else _nearest(event.uri, reader, consumers),
    )


def _nearest(uri: str, reader: Reader, consumers: Iterable[Consumer]) -> str:
    """Return the URI, among those that flows run on, of the asset with this name or nearly this URI."""
    tokens = {token for consumer in consumers for token in consumer.schedule.tokens}
    near = get_close_matches(uri, [token.value for token in tokens if token.kind == "uri"], n=1, cutoff=_ALIKE)
    owner = reader.assets.owner_of(uri)
    return owner if owner not in (None, uri) else next(iter(near), "")
