"""The assets of which decisions consumed events, for lists of decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace

from sqlalchemy import Connection, func, select, union_all

from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import DECISION, EVENT, RECEIPT

_ONE = RECEIPT.alias("one")
_FIRST = EVENT.alias("first")
_OF_ONE = (_ONE.c.decision == DECISION.c.number, _ONE.c.decision.is_not(None))
_DECISIONS = DECISION.join(
    _FIRST, _FIRST.c.sequence == select(func.min(_ONE.c.sequence)).where(*_OF_ONE).scalar_subquery()
)
_OF_THESE = in_values(DECISION.c.number, "decisions")
# The asset of the first update, with the number of all updates.
_FIRST_ASSETS = (
    select(
        DECISION.c.number,
        _FIRST.c.uri,
        _FIRST.c.asset_name,
        select(func.count()).select_from(_ONE).where(*_OF_ONE).scalar_subquery(),
        _FIRST.c.sequence.label("sequence"),
    )
    .select_from(_DECISIONS)
    .where(_OF_THESE)
)
_OTHERS = (
    select(DECISION.c.number, func.min(RECEIPT.c.sequence).label("sequence"), func.count().label("events"))
    .select_from(
        _DECISIONS.join(RECEIPT, RECEIPT.c.decision == DECISION.c.number).join(
            EVENT, EVENT.c.sequence == RECEIPT.c.sequence
        )
    )
    .where(_OF_THESE, RECEIPT.c.decision.is_not(None), RECEIPT.c.sequence > _FIRST.c.sequence)
    .where(EVENT.c.uri != _FIRST.c.uri)
    .group_by(DECISION.c.number, EVENT.c.uri)
    .subquery()
)
_OTHER_ASSETS = select(
    _OTHERS.c.number, EVENT.c.uri, EVENT.c.asset_name, _OTHERS.c.events, _OTHERS.c.sequence
).select_from(_OTHERS.join(EVENT, EVENT.c.sequence == _OTHERS.c.sequence))
# Sorting a hundred thousand updates by asset takes long, so those of the first asset are not among them.
_ASSETS = union_all(_FIRST_ASSETS, _OTHER_ASSETS).order_by("sequence")


@dataclass(frozen=True)
class ConsumedAsset:
    """An asset of which a decision consumed events, and how many."""

    uri: str
    name: str
    events: int


def consumed_assets(connection: Connection, decisions: Collection[int]) -> dict[int, list[ConsumedAsset]]:
    """Return the assets of which decisions consumed events, in the order of their first event, by the numbers."""
    found: defaultdict[int, list[ConsumedAsset]] = defaultdict(list)
    for number, uri, name, events, _ in connection.execute(_ASSETS, {"decisions": list(decisions)}).all():
        found[number].append(ConsumedAsset(uri, name, events))
    return {number: [_without(first, others), *others] for number, (first, *others) in found.items()}


def _without(all_of_them: ConsumedAsset, others: Collection[ConsumedAsset]) -> ConsumedAsset:
    return replace(all_of_them, events=all_of_them.events - sum(each.events for each in others))
