"""The effects of an update that a user has just recorded: the consumers that queue it, and those that refuse it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from assetflow.core.values.events import AssetEvent

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
        meant: a sentence on what the user probably meant, if no consumer wants the update; else an empty text.
    """

    queued: Mapping[str, bool] = field(default_factory=dict[str, bool])
    refused: Sequence[str] = ()
    meant: str = ""


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
        meant="" if receipts and receipts[0].consumer else meant(reader, event.uri),
    )


def meant(reader: Reader, uri: str) -> str:
    """Return a sentence with the asset that flows run on and that is called nearly so; an empty text for none."""
    tokens = {token for record in reader.consumers.all() for token in record.consumer.schedule.tokens}
    uris = [token.value for token in tokens if token.kind == "uri"]
    names = {*uris, *reader.assets.names(uris).values(), *(each.value for each in tokens if each.kind == "name")}
    near = get_close_matches(uri, sorted(names), n=1, cutoff=_ALIKE)
    return f"flows are scheduled on {near[0]}: emit that if you meant it" if near else ""
